#!/usr/bin/env bash
# Counts words of a private dialect in the comments of each folder and in the documents, per 1,000 words, and prints each
# folder that is beyond a limit. The limits come from comments of OpenSMTPD, varnish, Redis, lighttpd, libuv, Orthanc and DCMTK.
#   words.sh ROOT
set -euo pipefail
cd "$1"
git ls-files -- '*.[ch]' '*.cc' '*.hh' '*.cu' '*.cuh' '*.def' '*.md' | perl -e '
    my @limits = ( # name, pattern, at most, at least
        ["what, who", qr/\b(?:what|who|whom|whose|whoever|whatever)\b/, 2, 0],
        ["tell, say, ask", qr/\b(?:tell|tells|telling|told|say|says|said|ask|asks|asked|asking)\b/, 1.5, 0],
        ["nobody, nothing, none", qr/\b(?:nobody|nothing|none|no one)\b/, 2, 0],
        ["must, cannot, should, need, do not", qr/\b(?:must|cannot|should|needs?|do not|does not|don.t)\b/, 1000, 5],
        ["Returns, Checks, If at the start",
         qr/(?:^|[.;:] )(?:Returns?|Checks?|Sets?|If|Notes?|Reads?|Writes?|Frees?|Creates?|Finds?)\b/m, 1000, 3]);
    my (%text, $offences);
    while (my $file = <STDIN>) {
        chomp $file;
        local $/;
        open my $in, "<", $file or next;
        my $source = <$in> // "";
        if ($file =~ /\.md$/) {
            $text{documents} .= "$source\n";
            next;
        }
        my ($folder) = split "/", $file;
        while ($source =~ m{/\*(.*?)\*/|//([^\n]*)}sg) {
            my $comment = $1 // $2;
            $comment =~ s/\n\s*\*/ /g;
            $comment =~ s/\s+/ /g;
            $comment =~ s/^ //;
            $text{$folder} .= "$comment\n";
        }
    }
    for my $group (sort keys %text) {
        my $words = () = $text{$group} =~ /\S+/g;
        for my $limit (@limits) {
            my ($name, $pattern, $most, $least) = @$limit;
            next if $group eq "documents" and $least;
            my $count = () = $text{$group} =~ /$pattern/g;
            my $rate = 1000 * $count / $words;
            next if $rate <= $most and $rate >= $least;
            my $side = $rate > $most ? "at most $most" : "at least $least";
            printf "%s: \"%s\" %.1f times in 1,000 words, %s allowed\n", $group, $name, $rate, $side;
            $offences++;
        }
    }
    exit($offences ? 1 : 0);
'
