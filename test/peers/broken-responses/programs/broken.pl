# Arguments and output: test/peers/broken-responses/clients.ts.
use strict;
use warnings;
use LWP::UserAgent;

my ($variant, $base, @paths) = @ARGV;
for my $path (@paths) {
    my $bytes = 0;
    my $response = LWP::UserAgent->new->get($base . $path, ':content_cb' => sub { $bytes += length $_[0] });
    my $error = $response->header('X-Died') // ($response->is_success ? '' : $response->status_line);
    $error =~ s/["\\\s]+/ /g;
    print qq({"path":"$path","bytes":$bytes,"error":"$error"}\n);
}
