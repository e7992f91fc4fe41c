/** Settings of the listener, the admin port, the shutdown, the log and the metrics. */
import { allowedHosts, allowedOrigins, listenAddress } from './formats/address.ts';
import { allowRules } from './formats/allow-rules.ts';
import { headerName, headerValueFault, secret } from './formats/credentials.ts';
import { fraction, matching, oneOf, booleanValue, wholeNumber } from './formats/formats.ts';
import { fileSetting, setting, settingWithoutDefault } from './setting.ts';

const DAY_MS = 86_400_000;
const LOOPBACK_NAMES: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

export const listen = {
  address: setting(listenAddress, 'localhost:18080', {
    doc: 'Address for the application. localhost binds 127.0.0.1 and, where present, ::1. Port 0 takes a free one. An address that is not loopback needs listen.requiredHeader or listen.allowUnauthenticatedNetwork.',
    env: 'SIDECAR_LISTEN',
  }),
  socketMode: setting(
    matching(/^0?[0-7]{3}$/, 'three octal digits after a 0, such as 0600 (in a file in quotes)'),
    '0600',
    {
      doc: 'Permission bits of a unix: socket.',
    },
  ),
  requiredHeader: {
    name: settingWithoutDefault(headerName, {
      doc: 'A header field that every request must carry, with the value below; it is never forwarded.',
    }),
    value: settingWithoutDefault(secret('a field value: printable ASCII', headerValueFault), {
      doc: 'The value of the required header field.',
      sensitive: true,
    }),
    valueFile: fileSetting({
      doc: 'File that holds the value of the required header field; one trailing line end is dropped.',
    }),
  },
  allowUnauthenticatedNetwork: setting(booleanValue, false, {
    doc: 'Whether an address that is not loopback is allowed without a required header field: any client that reaches it then calls the partner in your name.',
  }),
  allowedHosts: setting(allowedHosts(1), LOOPBACK_NAMES, {
    doc: 'Allowed values of the Host field; on a unix: socket every valid value is allowed, and so is none.',
    env: 'SIDECAR_ALLOWED_HOSTS',
  }),
  allowedOrigins: setting(allowedOrigins, [], {
    doc: 'Web origins whose pages may call the sidecar; only these get CORS headers.',
    env: 'SIDECAR_ALLOWED_ORIGINS',
  }),
  allow: setting(allowRules, [], {
    doc: 'Allowed requests: methods, and a path with everything below it, by whole segments. None allows everything. List HEAD and OPTIONS too: no method implies another.',
  }),
  forwardProxy: setting(booleanValue, false, {
    doc: 'Whether applications may use the sidecar as their http_proxy: requests whose URL names the server of upstream.baseUrl are then accepted too. Never for a browser.',
  }),
  allowHalfClose: setting(booleanValue, false, {
    doc: 'Whether a client that has closed its sending side still waits for the response; false: it counts as gone.',
  }),
  keepAliveMs: setting(wholeNumber(1000, DAY_MS), 3_600_000, {
    doc: 'How long an idle client connection is kept open.',
  }),
  maxConnections: setting(wholeNumber(1, 1_000_000), 10_000, {
    doc: 'Most client connections open at once; fewer where the limit of file descriptors or of memory allows fewer (docs/operations.md).',
  }),
};

export const admin = {
  address: setting(listenAddress, 'localhost:19464', {
    doc: 'Address of probes, metrics and status. Port 0 takes a free one.',
    env: 'SIDECAR_ADMIN_LISTEN',
  }),
  allowedHosts: setting(allowedHosts(0), LOOPBACK_NAMES, {
    doc: 'Allowed values of the Host field on the admin port; IP addresses are always allowed.',
  }),
  exposeAll: setting(booleanValue, false, {
    doc: 'Whether peers that are not loopback get more than /metrics and the probes.',
  }),
  allowQuit: setting(booleanValue, false, {
    doc: 'Whether POST /quitquitquit ends the sidecar as SIGTERM does: for loopback peers only, never for a browser.',
  }),
  recentCalls: settingWithoutDefault(booleanValue, {
    doc: 'Whether the last 50 calls, with their paths without query, are kept in memory for the status page and /status. Default: true, but false with admin.exposeAll, since paths may hold personal data.',
  }),
};

export const response = {
  cookies: settingWithoutDefault(oneOf(['adapt', 'pass']), {
    doc: 'What happens to Set-Cookie: adapt removes Secure, SameSite=None and the Domain of the upstream and replaces the base path in Path, so that a client on http://localhost sends the cookie back; pass changes nothing. Default: adapt where listen.address is loopback or a unix: socket, else pass.',
    isLive: true,
  }),
};

export const shutdown = {
  drainMs: setting(wholeNumber(0, DAY_MS), 25_000, {
    doc: 'Longest time from the signal to the end of the process; requests that are still open then are cut.',
    env: 'SIDECAR_DRAIN_MS',
  }),
  delayMs: setting(wholeNumber(0, DAY_MS), 0, {
    doc: 'The part of shutdown.drainMs, at its start, in which the listener stays open.',
    env: 'SIDECAR_DRAIN_DELAY_MS',
  }),
};

export const log = {
  level: setting(oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']), 'info', {
    doc: 'The least severe messages that are logged; requests are logged at info, and at warn where the sidecar itself replies with a 5xx.',
    isLive: true,
  }),
  format: setting(oneOf(['auto', 'json', 'pretty']), 'auto', {
    doc: 'How the log is written: json is one JSON document per line, pretty is for people; auto is pretty on a terminal, else json.',
  }),
  sample: setting(fraction, 1, {
    doc: 'The share of successful, fast requests that is logged; errors, refusals and slow requests are always logged. Below 1 the field sampled of a request line has the share logged of its kind.',
  }),
  slowMs: setting(wholeNumber(0, DAY_MS), 1000, {
    doc: 'Requests of this duration or longer are slow, and are logged regardless of log.sample.',
  }),
};

export const metrics = {
  buckets: setting(oneOf(['default', 'few', 'none']), 'default', {
    doc: 'The buckets of the histograms in /metrics: default has 19 for each series (ten for those of upstream_duration_seconds), few has five (0.1, 1, 10 and 60 s, and +Inf), none exposes counts and sums only, as summaries.',
  }),
};

export const allowInsecureHttp = setting(booleanValue, false, {
  doc: 'Whether http: URLs are accepted for hosts that are not loopback: secret, token and data then cross the network unencrypted.',
});
