#include "service/web/pages/web_browse.h"

#include "db/report.h"
#include "service/web/api/web_api.h"
#include "service/web/decide/web_decide.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 200 };

/* --------------------------------------------------------------------------------- request --- */

static int
list_read_limit(struct web_list *list, const char *value, struct error *error)
{
    if (strspn(value, "0123456789") != strlen(value) || strlen(value) > 3 || atoi(value) < 1 || atoi(value) > ROWS_MAX)
        return error_set(error, -EINVAL, CODE_NONE, "parameter limit: a number from 1 to %d is expected", ROWS_MAX);
    list->browse.limit = atoi(value);
    return 0;
}

/* A form sends its empty fields, too. */
static int
list_read_parameters(struct web_list *list, const struct web_request *request, struct error *error)
{
    for (size_t i = 0; i < request->parameter_count && i < WEB_PARAMETERS; i++) {
        const char *name = request->parameters[i].name, *value = request->parameters[i].value;
        const int field = report_field_place(list->list, name);
        int rc = 0;
        if (request->parameters[i].is_cut) {
            rc = error_set(error, -EINVAL, CODE_NONE, "parameter %s: a NUL is in it", name);
        } else if (field >= 0) {
            list->browse.values[field] = value;
            list->is_filtered |= *value != '\0';
        } else if (strcmp(name, "sort") == 0) {
            list->browse.sort = value;
        } else if (strcmp(name, "after") == 0) {
            list->browse.after = value;
        } else if (strcmp(name, "limit") == 0) {
            rc = list_read_limit(list, value, error);
        } else {
            rc = error_set(error, -EINVAL, CODE_NONE, "parameter %s: this page has no such parameter", name);
        }
        if (rc)
            return rc;
    }
    return 0;
}

static int
list_hash_text(struct web_list *list, const struct web *web, struct error *error)
{
    const int text = report_field_place(list->list, "text");
    const char *value = text >= 0 ? list->browse.values[text] : NULL;
    if (!value || !*value || web->conf->identifiers != CONF_IDENTIFIERS_HASHED)
        return 0;
    const int rc = pseudonym_of(&web->key, value, list->pseudonym);
    if (rc)
        return error_set_system(error, rc, "hash the text");
    list->browse.pseudonym = list->pseudonym;
    return 0;
}

/* Returns the choices of the states; NULL: the list has no states. */
static const struct report_choice *
list_states(const struct web_list *list)
{
    const int field = report_field_place(list->list, "state");
    return field < 0 ? NULL : list->list->fields[field].choices;
}

int
web_list_read(struct web_list *list, const struct web_view *view, enum report_browse_name name, struct error *error)
{
    *list = (struct web_list){.view = view, .list = &report_browsed[name], .api = report_browsed[name].key};
    struct report *report = view->web->report;
    int rc = list_read_parameters(list, view->request, error);
    if (rc == 0)
        rc = list_hash_text(list, view->web, error);
    if (rc == 0)
        rc = report_browse_count(report, list->list, &list->browse, report_field_place(list->list, "state"),
                                 list->counts, error);
    if (rc)
        return rc;
    const char *state = web_list_value(list, "state");
    const struct report_choice *choices = list_states(list);
    int i = 0;
    while (choices && choices[i].word && strcmp(choices[i].word, state) != 0)
        i++;
    list->total = list->counts[i]; /* the last count is that of all */
    list->browse.total = &list->total;
    return report_browse(report, list->list, &list->browse, &list->table, error);
}

void
web_list_clear(struct web_list *list)
{
    if (list->table.list)
        report_table_free(&list->table);
}

const char *
web_list_value(const struct web_list *list, const char *key)
{
    const int field = report_field_place(list->list, key);
    const char *value = field >= 0 ? list->browse.values[field] : NULL;
    return value ? value : "";
}

/* ------------------------------------------------------------------------------- addresses --- */

static void
address_add(const char **before, const char *key, const char *value, FILE *out)
{
    if (!value || !*value)
        return;
    fprintf(out, "%s%s=", *before, key);
    html_query(value, out);
    *before = "&amp;";
}

/* Writes the values of the filter except one. */
static void
address_fields(const struct web_list *list, const char *but, const char **before, FILE *out)
{
    for (size_t i = 0; i < list->list->field_count; i++)
        if (strcmp(list->list->fields[i].key, but) != 0)
            address_add(before, list->list->fields[i].key, list->browse.values[i], out);
    if (strcmp(but, "sort") != 0)
        address_add(before, "sort", list->browse.sort, out);
}

/* Writes the address of the list with one value changed: NULL removes it. */
static void
list_address(const struct web_list *list, const char *key, const char *value, FILE *out)
{
    const char *before = "?";
    char limit[24] = "";
    if (list->browse.limit && strcmp(key, "limit") != 0)
        snprintf(limit, sizeof limit, "%" PRId64, list->browse.limit);
    fputs(list->view->request->path + 1, out);
    address_fields(list, key, &before, out);
    address_add(&before, "limit", limit, out);
    address_add(&before, key, value, out);
}

static void
list_keep(const char *key, const char *value, FILE *out)
{
    if (!value || !*value)
        return;
    fprintf(out, "<input type=\"hidden\" name=\"%s\" value=\"", key);
    html_text(value, out);
    fputs("\">", out);
}

/* Writes the values of the filter as fields of a form, except one. */
static void
list_keep_fields(const struct web_list *list, const char *but)
{
    for (size_t i = 0; i < list->list->field_count; i++)
        if (strcmp(list->list->fields[i].key, but) != 0)
            list_keep(list->list->fields[i].key, list->browse.values[i], list->view->out);
    if (strcmp(but, "sort") != 0)
        list_keep("sort", list->browse.sort, list->view->out);
}

/* Begins a link to the list with one value changed. */
static void
link_begin(const struct web_list *list, const char *attribute, const char *key, const char *value, bool is_current)
{
    FILE *out = list->view->out;
    char limit[24] = "";
    if (!list->view->request->posts) {
        fprintf(out, "<a%s href=\"", attribute);
        list_address(list, key, value, out);
        fprintf(out, "\"%s>", is_current ? " aria-current=\"true\"" : "");
        return;
    }
    if (list->browse.limit && strcmp(key, "limit") != 0)
        snprintf(limit, sizeof limit, "%" PRId64, list->browse.limit);
    fprintf(out, "<form class=\"link\" method=\"post\" action=\"%s\">", list->view->request->path + 1);
    list_keep_fields(list, key);
    list_keep("limit", limit, out);
    list_keep(key, value, out);
    fprintf(out, "<button%s%s>", attribute, is_current ? " aria-current=\"true\"" : "");
}

static void
link_end(const struct web_list *list)
{
    fputs(list->view->request->posts ? "</button></form>" : "</a>", list->view->out);
}

/* ----------------------------------------------------------------------------------- chips --- */

static void
chip_write(const struct web_list *list, const char *word, const char *title, int64_t count, bool is_current)
{
    FILE *out = list->view->out;
    const struct html_state *state = word ? html_find_state(word) : NULL;
    link_begin(list, " class=\"chip\"", "state", word, is_current);
    if (state) {
        fprintf(out, "<span class=\"%s\">", html_mark_class(state->mark));
        html_icon(state->mark, out);
        fputs("</span>", out);
    }
    fprintf(out, "%s <b>", title);
    html_count(count, out);
    fputs("</b>", out);
    link_end(list);
    fputc('\n', out);
}

void
web_list_chips(const struct web_list *list)
{
    const struct report_choice *choices = list_states(list);
    const char *state = web_list_value(list, "state");
    int all = 0;
    if (!choices)
        return;
    while (choices[all].word)
        all++;
    fputs("<nav class=\"chips\" aria-label=\"By state\">", list->view->out);
    chip_write(list, NULL, "All", list->counts[all], !*state);
    for (int i = 0; i < all; i++) {
        const bool is_current = strcmp(choices[i].word, state) == 0;
        if (is_current || (list->counts[i] > 0 && choices[i].title))
            chip_write(list, choices[i].word, choices[i].title ? choices[i].title : state, list->counts[i], is_current);
    }
    fputs("</nav>\n", list->view->out);
}

/* ------------------------------------------------------------------------------------ form --- */

static void
form_option(const char *value, const char *title, const char *selected, FILE *out)
{
    fputs("<option value=\"", out);
    html_text(value, out);
    fprintf(out, "\"%s>", strcmp(value, selected) == 0 ? " selected" : "");
    html_text(title, out);
    fputs("</option>", out);
}

/* Writes the options of a field. A value that is not among them is one more. */
static int
form_options(const struct web_list *list, const struct report_field *field, const char *value, struct error *error)
{
    static const char *const spans[][2] = {
        {"24h", "last 24 hours"}, {"7d", "last 7 days"}, {"30d", "last 30 days"}, {"365d", "last year"}};
    FILE *out = list->view->out;
    bool has_value = !*value;
    form_option("", "any", value, out);
    for (size_t i = 0; field->form == REPORT_MOMENT && i < sizeof spans / sizeof *spans; i++) {
        form_option(spans[i][0], spans[i][1], value, out);
        has_value |= strcmp(spans[i][0], value) == 0;
    }
    for (const struct report_choice *choice = field->choices; choice && choice->word; choice++) {
        form_option(choice->word, choice->title ? choice->title : choice->word, value, out);
        has_value |= strcmp(choice->word, value) == 0;
    }
    if (field->options) {
        char **options;
        size_t count;
        const int rc = report_options(list->view->web->report, field, &options, &count, error);
        if (rc)
            return rc;
        for (size_t i = 0; i < count; i++) {
            has_value |= strcmp(options[i], value) == 0;
            form_option(options[i], options[i], value, out);
            free(options[i]);
        }
        free(options);
    }
    if (!has_value)
        form_option(value, value, value, out);
    return 0;
}

static int
form_field(const struct web_list *list, const struct report_field *field, struct error *error)
{
    FILE *out = list->view->out;
    const char *value = web_list_value(list, field->key);
    const bool selects = field->options || field->choices || field->form == REPORT_MOMENT;
    int rc = 0;
    fprintf(out, "<label>%s<%s name=\"%s\"", field->title, selects ? "select" : "input type=\"text\" maxlength=\"256\"",
            field->key);
    if (selects) {
        fputc('>', out);
        rc = form_options(list, field, value, error);
        fputs("</select>", out);
    } else {
        fputs(" value=\"", out);
        html_text(value, out);
        fputs("\">", out);
    }
    fputs("</label>\n", out);
    return rc;
}

int
web_list_form(const struct web_list *list, const char *const *keys, struct error *error)
{
    FILE *out = list->view->out;
    fprintf(out, "<form class=\"filters\" action=\"%s\"%s>", list->view->request->path + 1,
            list->view->request->posts ? " method=\"post\"" : "");
    for (size_t i = 0; i < list->list->field_count; i++) {
        const char *const *key = keys;
        while (*key && strcmp(*key, list->list->fields[i].key) != 0)
            key++;
        if (!*key)
            list_keep(list->list->fields[i].key, list->browse.values[i], out);
    }
    list_keep("sort", list->browse.sort, out);
    for (; *keys; keys++) {
        const int rc = form_field(list, &list->list->fields[report_field_place(list->list, *keys)], error);
        if (rc)
            return rc;
    }
    fprintf(out, "<button class=\"primary\">Filter</button>\n<a class=\"button\" href=\"%s\">Clear</a></form>\n",
            list->view->request->path + 1);
    return 0;
}

void
web_list_text_form(const struct web_list *list, const char *hint)
{
    FILE *out = list->view->out;
    fprintf(out, "<form class=\"filters\" method=\"post\" action=\"%s\">", list->view->request->path + 1);
    list_keep_fields(list, "text");
    fputs("<label>Text<input type=\"search\" name=\"text\" maxlength=\"256\" required autocomplete=\"off\" "
          "placeholder=\"",
          out);
    html_text(hint, out);
    fputs("\" value=\"", out);
    html_text(web_list_value(list, "text"), out);
    fputs("\"></label>\n<button>Find</button></form>\n", out);
}

/* ----------------------------------------------------------------------------------- saved --- */

static void
saved_write(const struct web_list *list, const struct report_table *saved)
{
    FILE *out = list->view->out;
    for (size_t row = 0; row < saved->row_count; row++) {
        char subject[DECISION_FILTER_NAME + DECISION_LIST + 16];
        const char *name = report_cell(saved, row, "name");
        snprintf(subject, sizeof subject, "filter %s %s", list->api, name);
        fprintf(out, "<li><a href=\"%s?", list->view->request->path + 1);
        html_text(report_cell(saved, row, "filter"), out);
        fputs("\">", out);
        html_untrusted(name, out);
        fputs("</a> ", out);
        web_form_write(list->view, "delete", subject, "Delete");
        fputs("</li>\n", out);
    }
}

static void
saved_form(const struct web_list *list)
{
    FILE *out = list->view->out;
    char form[WEB_SESSION_FORM];
    const char *before = "";
    web_session_form(&list->view->web->access, list->view->request->person, form);
    fputs("<form class=\"decide\" method=\"post\" action=\"views\">", out);
    web_form_field(out, "form", form);
    web_form_field(out, "list", list->api);
    fputs("<input type=\"hidden\" name=\"filter\" value=\"", out);
    address_fields(list, "text", &before, out);
    fputs("\"><input type=\"hidden\" name=\"back\" value=\"", out);
    list_address(list, "after", NULL, out);
    fprintf(out,
            "\"><input name=\"name\" required maxlength=\"%d\" autocomplete=\"off\" placeholder=\"Name\" "
            "aria-label=\"Name of this filter\"><button>Save filter</button></form>\n",
            DECISION_FILTER_NAME);
}

int
web_list_saved(const struct web_list *list, struct error *error)
{
    const struct report_list *filters = &report_browsed[BROWSE_FILTERS];
    const struct web_person *person = list->view->request->person;
    struct report_browse browse = {.limit = ROWS_MAX};
    struct report_table saved;
    if (list->view->request->posts || !web_may(list->view, "save", "filter work x"))
        return 0;
    browse.values[report_field_place(filters, "person")] = person->name;
    browse.values[report_field_place(filters, "list")] = list->api;
    const int rc = report_browse(list->view->web->report, filters, &browse, &saved, error);
    if (rc)
        return rc;
    bool can_save = list->browse.sort && *list->browse.sort;
    for (size_t i = 0; i < list->list->field_count; i++)
        can_save |= list->browse.values[i] && *list->browse.values[i] && strcmp(list->list->fields[i].key, "text") != 0;
    if (saved.row_count > 0 || can_save) {
        fputs("<div class=\"links\"><span class=\"dim\">Your filters:</span>\n<ul class=\"saved\">", list->view->out);
        saved_write(list, &saved);
        fputs("</ul>", list->view->out);
        if (can_save)
            saved_form(list);
        fputs("</div>\n", list->view->out);
    }
    report_table_free(&saved);
    return 0;
}

/* ----------------------------------------------------------------------------------- table --- */

/* Returns the direction of an order in the request: 1 ascending, -1 descending, 0 if it is another order. */
static int
list_direction(const struct web_list *list, const char *key)
{
    const struct report_sort *sort = list->list->sorts;
    const char *asked = list->browse.sort;
    if (!asked || !*asked)
        return strcmp(sort->key, key) != 0 ? 0 : sort->descends ? -1 : 1;
    const bool descends = *asked == '-';
    return strcmp(asked + descends, key) != 0 ? 0 : descends ? -1 : 1;
}

static bool
list_descends_first(const struct report_list *list, const char *key)
{
    for (size_t i = 0; i < list->sort_count; i++)
        if (strcmp(list->sorts[i].key, key) == 0)
            return list->sorts[i].descends;
    return false;
}

void
web_list_head(const struct web_list *list, const struct web_column *columns, size_t count)
{
    FILE *out = list->view->out;
    fputs("<table class=\"rows\"><thead><tr>", out);
    for (size_t i = 0; i < count; i++) {
        const struct web_column *column = &columns[i];
        const int direction = column->sort ? list_direction(list, column->sort) : 0;
        fprintf(out, "<th scope=\"col\" class=\"%s\"%s>", column->class,
                direction > 0   ? " aria-sort=\"ascending\""
                : direction < 0 ? " aria-sort=\"descending\""
                                : "");
        if (column->sort) {
            char sort[40];
            const bool descends = direction ? direction > 0 : list_descends_first(list->list, column->sort);
            snprintf(sort, sizeof sort, "%s%s", descends ? "-" : "", column->sort);
            link_begin(list, "", "sort", sort, false);
            fprintf(out, "%s%s", column->title, direction > 0 ? " &#9652;" : direction < 0 ? " &#9662;" : "");
            link_end(list);
        } else {
            fputs(column->title, out);
        }
        fputs("</th>", out);
    }
    fputs("</tr></thead>\n<tbody>\n", out);
}

/* Writes a link to all rows. */
static void
pager_api(const struct web_list *list, const char *format, const char *label)
{
    FILE *out = list->view->out;
    const char *before = "?";
    if (list->view->request->posts) {
        fprintf(out, "<form class=\"link\" method=\"post\" action=\"%s%s\">", &API_ROOT[1], list->api);
        list_keep_fields(list, "");
        fprintf(
            out,
            "<input type=\"hidden\" name=\"format\" value=\"%s\"><input type=\"hidden\" name=\"limit\" value=\"%d\">",
            format, API_LIMIT);
        fprintf(out, "<button>%s", label);
    } else {
        fprintf(out, "<a href=\"%s%s", &API_ROOT[1], list->api);
        address_fields(list, "", &before, out);
        fprintf(out, "%sformat=%s&amp;limit=%d\">%s", before, format, API_LIMIT, label);
    }
    link_end(list);
}

/* Writes a link to other rows. */
static void
pager_link(const struct web_list *list, const char *attribute, const char *key, const char *value, const char *label)
{
    fputc('\n', list->view->out);
    link_begin(list, attribute, key, value, false);
    fputs(label, list->view->out);
    link_end(list);
}

void
web_list_pager(const struct web_list *list)
{
    FILE *out = list->view->out;
    const bool continues = list->browse.after && *list->browse.after;
    fputs("<div class=\"pager\"><span>", out);
    html_count((int64_t)list->table.row_count, out);
    fputs(continues ? " more of <b>" : " of <b>", out);
    html_count(list->total, out);
    fputs("</b></span>", out);
    if (continues)
        pager_link(list, "", "after", NULL, "First");
    if (*list->table.next)
        pager_link(list, " rel=\"next\"", "after", list->table.next, "Next");
    if (list->total > PAGE_ROWS && list->browse.limit != ROWS_MAX)
        pager_link(list, "", "limit", "200", "200 per page");
    if (list->table.row_count > 0) {
        fputc('\n', out);
        pager_api(list, "csv", list->total > API_LIMIT ? "CSV of the first 10,000" : "CSV of all");
        fputc('\n', out);
        pager_api(list, "json", "JSON");
    }
    fputs("</div>\n", out);
}
