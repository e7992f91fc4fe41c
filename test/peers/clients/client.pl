# Calls of LWP::UserAgent. Arguments and output: test/peers/client-stacks/client-program.ts.
use strict;
use warnings;
use Digest::SHA;
use HTTP::Request;
use JSON::PP;
use LWP::UserAgent;

$| = 1;
my (undef, $base, $folder, @cells) = @ARGV;
my $agent = LWP::UserAgent->new(env_proxy => 1, keep_alive => 1, cookie_jar => {}, timeout => 60);

sub report { print encode_json({@_}), "\n" }

sub call {
    my ($receive, $path, $body, $length) = @_;
    my $request = HTTP::Request->new(defined $body ? 'POST' : 'GET', "$base/$path");
    if (defined $body) {
        $request->header('Content-Type' => 'application/json', 'Content-Length' => $length);
        $request->content($body);
    }
    my $response = $agent->request($request, $receive, 65536);
    die $response->status_line . "\n" unless $response->is_success;
    # LWP reports here, and not in the status, that a body has broken off.
    die $response->header('Client-Aborted') . "\n" if $response->header('Client-Aborted');
}

sub body_of {
    my ($cell) = @_;
    open my $file, '<:raw', "$folder/$cell" or die "$folder/$cell: $!";
    my $length = -s $file;
    if ($cell eq 'post') { local $/; my $text = <$file>; return ($text, $length) }
    return (sub { read $file, my $chunk, 65536; $chunk }, $length);
}

sub run_cell {
    my ($cell) = @_;
    my ($bytes, $hash) = (0, Digest::SHA->new(256));
    my $digest = sub { $bytes += length $_[0]; $hash->add($_[0]) };
    if ($cell eq 'sse') {
        call(sub { report(cell => $cell, event => $1) while $_[0] =~ /^data: (.*)$/mg }, $cell);
    }
    elsif ($cell eq 'keep-alive') { call($digest, $cell) for 1 .. 5 }
    elsif ($cell eq 'cookies') { call($digest, $_) for qw(a/login b/login a/account b/account) }
    elsif ($cell eq 'post' || $cell eq 'up') { call($digest, $cell, body_of($cell)) }
    else { call($digest, $cell) }
    report(cell => $cell, bytes => $bytes, sha256 => $hash->hexdigest);
}

for my $cell (@cells) {
    next if eval { run_cell($cell); 1 };
    report(cell => $cell, error => "$@");
}
