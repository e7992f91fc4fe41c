/** Settings of the upstream, its deadlines and retries. */
import {
  headerValueFault,
  idempotencyKeyHeader,
  queryNameFault,
  queryValueFault,
  tokenHeader,
  upstreamHeaderNameFault,
} from './formats/credentials.ts';
import { booleanValue, matching, oneOf, wholeNumber } from './formats/formats.ts';
import { secretMap } from './formats/one-or-many.ts';
import { fileSetting, NO_ENTRIES, setting, settingWithoutDefault } from './setting.ts';
import { tlsGroups } from './formats/tls-groups.ts';
import { baseUrl } from './formats/url.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MIB = 1_048_576;

export const upstream = {
  baseUrl: settingWithoutDefault(baseUrl('https://api.example.com/v1'), {
    doc: "The partner API's base URL. The paths of requests are joined to its path and cannot leave it.",
    env: 'SIDECAR_BASE_URL',
    required: "the partner API's base URL, such as https://api.example.com/v1",
  }),
  tokenHeader: setting(tokenHeader, 'Authorization', {
    doc: "The header field of a call that carries the token. The client's own field of this name, and its Authorization, are removed. Fields of another meaning, such as Content-Type or Accept, are refused.",
  }),
  tokenPrefix: setting(matching(/^(?:[!-~][ -~]*)?$/, 'printable ASCII such as "Bearer ", or nothing'), 'Bearer ', {
    doc: 'What stands before the token in upstream.tokenHeader; in a file the empty text for nothing. A token_type of this name is accepted, too.',
  }),
  headers: setting(
    secretMap('field names with texts', '{"X-Api-Key":"a"}', upstreamHeaderNameFault, headerValueFault),
    NO_ENTRIES,
    {
      doc: "Header fields that every call carries, each a text or { file: PATH }, which is read again when it changes. Their values are never shown. The client's own fields of these names are removed. Routes of another origin do not inherit them.",
      sensitive: true,
    },
  ),
  query: setting(
    secretMap('parameter names with texts', '{"api_key":"a"}', queryNameFault, queryValueFault),
    NO_ENTRIES,
    {
      doc: "Query parameters that every call carries, each a text or { file: PATH }, which is read again when it changes; the sidecar encodes names and values. Their values are never shown. The client's own parameters of these names are removed; the rest of its query stays as it is. Routes of another origin do not inherit them.",
      sensitive: true,
    },
  ),
  requestTimeoutMs: setting(wholeNumber(1, DAY_MS), 30_000, {
    doc: 'Longest time from the last byte of a request sent to the head of its response, each attempt.',
    env: 'SIDECAR_REQUEST_TIMEOUT_MS',
    isLive: true,
  }),
  connectTimeoutMs: setting(wholeNumber(1, HOUR_MS), 5000, {
    doc: 'Longest time to open a connection, name lookup and TLS included. The addresses of a name are tried 250 ms apart, and none is given up before.',
  }),
  maxConnectionAgeMs: setting(wholeNumber(0, DAY_MS), 300_000, {
    doc: 'A connection older than this takes no further request, so that DNS changes take effect; 0 = no limit.',
  }),
  bodyIdleTimeoutMs: setting(wholeNumber(0, DAY_MS), 300_000, {
    doc: 'Longest time without a byte of a body, in either direction; 0 = never.',
    env: 'SIDECAR_BODY_IDLE_TIMEOUT_MS',
    isLive: true,
  }),
  maxHeaderBytes: setting(wholeNumber(1024, MIB), 65_536, {
    doc: 'Most bytes of names and values in the header fields of a response, 500 at most; past either the response is dropped, and the call has an unknown outcome.',
  }),
  tlsGroups: settingWithoutDefault(tlsGroups, {
    doc: 'Groups of the TLS key exchange, most wanted first, such as X25519:P-256, for the API and for the token endpoint. Default: those of OpenSSL, whose first message has about 1600 bytes, since they have a post-quantum group; some firewalls cut connections for that length.',
  }),
  websocket: setting(booleanValue, false, {
    doc: 'Whether WebSocket upgrades are forwarded.',
    env: 'SIDECAR_WEBSOCKET',
  }),
  caFile: fileSetting({
    doc: 'PEM file of the certificate authorities to trust, here and for auth.caFile, instead of the built-in roots. Read again when it changes.',
    env: 'SIDECAR_CA_FILE',
  }),
  tlsCertificateFile: fileSetting({
    doc: 'PEM file of the client certificate, with its chain, that is offered to the API. Default: auth.tlsCertificateFile. Read again when it changes.',
  }),
  tlsKeyFile: fileSetting({ doc: 'PEM file of the private key of upstream.tlsCertificateFile, not encrypted.' }),
};

export const request = {
  deadlineMs: setting(wholeNumber(1, DAY_MS), 60_000, {
    doc: 'Longest time from the arrival of a request to the head of its response, all waits and attempts; a client may shorten it with x-sidecar-timeout-ms.',
    env: 'SIDECAR_DEADLINE_MS',
    isLive: true,
  }),
};

export const retry = {
  attempts: setting(wholeNumber(1, 100), 4, {
    doc: 'Attempts per request, the first included; retries after a rate-limit refusal do not count.',
    isLive: true,
  }),
  unsafeOn429: setting(booleanValue, true, {
    doc: 'Whether requests of every method are retried after a 429, a 403 with Retry-After or no calls remaining, or what throttle.refusals names (a rate-limited call was not carried out); false: idempotent methods only.',
    env: 'SIDECAR_RETRY_UNSAFE_ON_429',
    isLive: true,
  }),
  on401: setting(booleanValue, true, {
    doc: 'Whether a request that the upstream refused with 401 is sent once more, with another access token; false: each 401 goes to the client, and the token is replaced all the same.',
    env: 'SIDECAR_RETRY_ON_401',
    isLive: true,
  }),
  trustIdempotencyKey: setting(booleanValue, false, {
    doc: 'Whether a request with an Idempotency-Key field is retried as if its method were idempotent. retry.idempotencyKey.header implies it, for the field that it names.',
    isLive: true,
  }),
  idempotencyKey: {
    header: settingWithoutDefault(idempotencyKeyHeader, {
      doc: "The header field in which each request whose method is not idempotent (POST, PATCH) gets a random key, the same in all its attempts, unless it has such a field of its own: so a broken connection, 408, 502, 503 and 504 can be followed by a repeat. It covers the sidecar's repeats, and not those of the application: each of its requests gets a new key. Only for a partner that documents this field: any other carries out a repeated call twice. Routes of another origin do not inherit it.",
      isLive: true,
    }),
  },
  replayBufferBytes: setting(wholeNumber(0, 1024 * MIB), MIB, {
    doc: 'Largest request body that is kept for a retry; a larger one is streamed once and is not replayed.',
    env: 'SIDECAR_REPLAY_BUFFER_BYTES',
    isLive: true,
  }),
  replayTotalBytes: setting(wholeNumber(0, 65_536 * MIB), 32 * MIB, {
    doc: 'Most bytes kept for retries by all requests together; fewer where memory allows fewer (docs/operations.md). Above it, bodies are streamed once and are not replayed.',
    env: 'SIDECAR_REPLAY_TOTAL_BYTES',
    isLive: true,
  }),
};

export const unknownCalls = {
  file: fileSetting({
    doc: 'File that keeps calls that are not idempotent, from before they are sent until their client has the response; the command unknown-calls lists those without one. What is written survives the death of the process, not of the node or its power. One process writes to a file.',
  }),
  onWriteError: setting(oneOf(['forward', 'refuse']), 'forward', {
    doc: 'What happens to a call that cannot be recorded in unknownCalls.file: forward sends it all the same, refuse replies 503 UNKNOWN_CALLS_NOT_RECORDED and sends nothing.',
  }),
  paths: setting(booleanValue, true, {
    doc: 'Whether unknownCalls.file holds the paths of calls, without their queries; they may hold personal data.',
  }),
};
