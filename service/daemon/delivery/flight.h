/*
 * flight.h - deliveries under way, from their SENDING row to the row that says how it ended.
 *
 * A flight is made when its delivery is started, so that there is always room to note the end. Once
 * ended it is recorded in the batch in which that happened; when the batch cannot be committed it
 * stays and is recorded when the database can be written again.
 *
 *     the courier says    recorded as
 *     SENT                SENT, its commitment REQUESTED if it was
 *     TRANSIENT           DELAYED; older than delivery.give_up_seconds: FAILED
 *     PERMANENT           FAILED; without a presentation context: to the fallback, if there is one
 *     RETURNED            PENDING, the attempt not counted
 */
#ifndef NOCTULE_FLIGHT_H
#define NOCTULE_FLIGHT_H

#include "service/common/messages.h"
#include "service/daemon/core.h"

struct flights;
struct flight;

int flights_open(struct core *core, struct flights **flights);
void flights_close(struct flights *flights);

/* For a delivery that is being started: takes its strings over. NULL: no memory, nothing taken. */
struct flight *flight_new(struct flights *flights, struct queue_delivery *delivery);
/* It did not start after all. */
void flight_drop(struct flight *flight);

const struct queue_delivery *flight_delivery(const struct flight *flight);
/* One that has not ended; NULL: there is none. */
struct flight *flights_find(const struct flights *flights, int64_t delivery);
/* Have not ended; of one destination (NULL: of all). */
size_t flights_under_way(const struct flights *flights, const char *destination);
/* All that are not recorded for good. */
size_t flights_count(const struct flights *flights);
/* Is the end of a delivery of this instance still to be heard of or recorded? */
bool flights_carry(const struct flights *flights, const char *sop_instance_uid);

/* Fills the flight from a DELIVERED that was read: 0, or -EBADMSG for what cannot be, -ENOMEM. */
int flight_read(struct flight *flight, struct proto_reader *reader, struct message_delivered *told);
enum proto_delivery flight_outcome(const struct flight *flight);
/* The daemon's own word for it instead; both texts are literals. */
void flight_blame(struct flight *flight, enum proto_delivery outcome, const char *code,
                  const char *sentence);
/* What the courier gave back goes to it again only after a while, the attempt counted. */
void flight_put_off(struct flight *flight);
/* It ended so: kept until it is recorded. */
void flight_end(struct flight *flight);
/* Ends all that have not: the courier is gone. */
void flights_end_all(struct flights *flights, enum proto_delivery outcome, const char *code,
                     const char *sentence);

/* Writes what has ended and is not recorded yet; at the end of a batch. */
void flights_record(struct flights *flights);

/*
 * In the open batch: DELAYED for a while that grows with the attempts, or FAILED when the delivery
 * is older than delivery.give_up_seconds. Also for one that was SENT and whose commitment failed.
 */
int flight_try_later(struct core *core, const struct queue_delivery *delivery,
                     const struct queue_attempt *attempt);

#endif
