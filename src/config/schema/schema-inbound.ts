/** Settings of the listener, the admin port, the shutdown, the log and the metrics. */
import { allowedHosts, allowedOrigins, listenAddress } from './formats/address.ts';
import { allowRules } from './formats/allow-rules.ts';
import { headerName, headerValueFault, secret } from './formats/credentials.ts';
import { fraction, matching, oneOf, booleanValue, wholeNumber } from './formats/formats.ts';
import { fileSetting, setting, settingWithoutDefault } from './setting.ts';

const DAY_MS = 86_400_000;
const LOOPBACK_NAMES: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

export const listen = {
  address: setting({
    doc: 'Address for the application. localhost binds 127.0.0.1 and, where present, ::1. Port 0 takes a free one. An address that is not loopback needs listen.requiredHeader or listen.allowUnauthenticatedNetwork.',
    format: listenAddress(),
    default: 'localhost:18080',
    env: 'SIDECAR_LISTEN',
  }),
  socketMode: setting({
    doc: 'Permission bits of a unix: socket.',
    format: matching(/^0?[0-7]{3}$/, 'three octal digits after a 0, such as 0600 (in a file in quotes)'),
    default: '0600',
  }),
  requiredHeader: {
    name: settingWithoutDefault({
      doc: 'A header field that every request must carry, with the value below; it is never forwarded.',
      format: headerName(),
    }),
    value: settingWithoutDefault({
      doc: 'The value of the required header field.',
      format: secret('a field value: printable ASCII', headerValueFault),
      sensitive: true,
    }),
    valueFile: fileSetting({
      doc: 'File that holds the value of the required header field; one trailing line end is dropped.',
    }),
  },
  allowUnauthenticatedNetwork: setting({
    doc: 'Whether an address that is not loopback is allowed without a required header field: any client that reaches it then calls the partner in your name.',
    format: booleanValue(),
    default: false,
  }),
  allowedHosts: setting({
    doc: 'Allowed values of the Host field; on a unix: socket every valid value is allowed, and so is none.',
    format: allowedHosts(1),
    default: LOOPBACK_NAMES,
    env: 'SIDECAR_ALLOWED_HOSTS',
  }),
  allowedOrigins: setting<readonly string[]>({
    doc: 'Web origins whose pages may call the sidecar; only these get CORS headers.',
    format: allowedOrigins(),
    default: [],
    env: 'SIDECAR_ALLOWED_ORIGINS',
  }),
  allow: setting<readonly string[]>({
    doc: 'Allowed requests: methods, and a path with everything below it, by whole segments. None allows everything. List HEAD and OPTIONS too: no method implies another.',
    format: allowRules(),
    default: [],
  }),
  forwardProxy: setting({
    doc: 'Whether applications may use the sidecar as their http_proxy: requests whose URL names the server of upstream.baseUrl are then accepted too. Never for a browser.',
    format: booleanValue(),
    default: false,
  }),
  allowHalfClose: setting({
    doc: 'Whether a client that has closed its sending side still waits for the response; false: it counts as gone.',
    format: booleanValue(),
    default: false,
  }),
  keepAliveMs: setting({
    doc: 'How long an idle client connection is kept open.',
    format: wholeNumber(1000, DAY_MS),
    default: 3_600_000,
  }),
  maxConnections: setting({
    doc: 'Most client connections open at once; fewer where the limit of file descriptors or of memory allows fewer (docs/operations.md).',
    format: wholeNumber(1, 1_000_000),
    default: 10_000,
  }),
};

export const admin = {
  address: setting({
    doc: 'Address of probes, metrics and status. Port 0 takes a free one.',
    format: listenAddress(),
    default: 'localhost:19464',
    env: 'SIDECAR_ADMIN_LISTEN',
  }),
  allowedHosts: setting({
    doc: 'Allowed values of the Host field on the admin port; IP addresses are always allowed.',
    format: allowedHosts(0),
    default: LOOPBACK_NAMES,
  }),
  exposeAll: setting({
    doc: 'Whether peers that are not loopback get more than /metrics and the probes.',
    format: booleanValue(),
    default: false,
  }),
  allowQuit: setting({
    doc: 'Whether POST /quitquitquit ends the sidecar as SIGTERM does: for loopback peers only, never for a browser.',
    format: booleanValue(),
    default: false,
  }),
  recentCalls: settingWithoutDefault({
    doc: 'Whether the last 50 calls, with their paths without query, are kept in memory for the status page and /status. Default: true, but false with admin.exposeAll, since paths may hold personal data.',
    format: booleanValue(),
  }),
};

export const response = {
  cookies: settingWithoutDefault({
    doc: 'What happens to Set-Cookie: adapt removes Secure, SameSite=None and the Domain of the upstream and replaces the base path in Path, so that a client on http://localhost sends the cookie back; pass changes nothing. Default: adapt where listen.address is loopback or a unix: socket, else pass.',
    format: oneOf(['adapt', 'pass']),
    isLive: true,
  }),
};

export const shutdown = {
  drainMs: setting({
    doc: 'Longest time from the signal to the end of the process; requests that are still open then are cut.',
    format: wholeNumber(0, DAY_MS),
    default: 25_000,
    env: 'SIDECAR_DRAIN_MS',
  }),
  delayMs: setting({
    doc: 'The part of shutdown.drainMs, at its start, in which the listener stays open.',
    format: wholeNumber(0, DAY_MS),
    default: 0,
    env: 'SIDECAR_DRAIN_DELAY_MS',
  }),
};

export const log = {
  level: setting({
    doc: 'The least severe messages that are logged; requests are logged at info, and at warn where the sidecar itself replies with a 5xx.',
    format: oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']),
    default: 'info',
    isLive: true,
  }),
  format: setting({
    doc: 'How the log is written: json is one JSON document per line, pretty is for people; auto is pretty on a terminal, else json.',
    format: oneOf(['auto', 'json', 'pretty']),
    default: 'auto',
  }),
  sample: setting({
    doc: 'The share of successful, fast requests that is logged; errors, refusals and slow requests are always logged. Below 1 the field sampled of a request line has the share logged of its kind.',
    format: fraction(),
    default: 1,
  }),
  slowMs: setting({
    doc: 'Requests of this duration or longer are slow, and are logged regardless of log.sample.',
    format: wholeNumber(0, DAY_MS),
    default: 1000,
  }),
};

export const metrics = {
  buckets: setting({
    doc: 'The buckets of the histograms in /metrics: default has 19 for each series, few has five (0.1, 1, 10 and 60 s, and +Inf), none exposes counts and sums only, as summaries.',
    format: oneOf(['default', 'few', 'none']),
    default: 'default',
  }),
};

export const allowInsecureHttp = setting({
  doc: 'Whether http: URLs are accepted for hosts that are not loopback: secret, token and data then cross the network unencrypted.',
  format: booleanValue(),
  default: false,
});
