/**
 * The part of the schema that faces the partner: where it is, how tokens are had, how fast and how often to call.
 */
import { clientIdFault, scope, secret, secretFault } from './credentials.ts';
import { rate, text, toggle, wholeNumber } from './formats.ts';
import { setting, unset } from './setting.ts';
import { audience, baseUrl, redisUrl, urlPath } from './url.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MIB = 1_048_576;

export const upstream = {
  baseUrl: unset({
    doc: "The partner API's base URL. The paths of requests are joined to its path and cannot leave it.",
    format: baseUrl('https://api.example.com/v1'),
    env: 'SIDECAR_BASE_URL',
    required: "the partner API's base URL, such as https://api.example.com/v1",
  }),
  requestTimeoutMs: setting({
    doc: 'Longest time from the last byte of a request sent to the head of its response, each attempt.',
    format: wholeNumber(1, DAY_MS),
    default: 30_000,
    env: 'SIDECAR_REQUEST_TIMEOUT_MS',
  }),
  connectTimeoutMs: setting({
    doc: 'Longest time to open a connection, name lookup and TLS included.',
    format: wholeNumber(1, HOUR_MS),
    default: 5000,
    env: 'SIDECAR_UPSTREAM_CONNECT_TIMEOUT_MS',
  }),
  maxConnectionAgeMs: setting({
    doc: 'A connection older than this takes no further request, so that changes of DNS are followed; 0 = no limit.',
    format: wholeNumber(0, DAY_MS),
    default: 300_000,
    env: 'SIDECAR_UPSTREAM_MAX_CONNECTION_AGE_MS',
  }),
  bodyIdleTimeoutMs: setting({
    doc: 'Longest time without a byte of a body, in either direction; 0 = never.',
    format: wholeNumber(0, DAY_MS),
    default: 300_000,
    env: 'SIDECAR_BODY_IDLE_TIMEOUT_MS',
  }),
  websocket: setting({
    doc: 'Whether WebSocket upgrades are passed on.',
    format: toggle(),
    default: false,
    env: 'SIDECAR_WEBSOCKET',
  }),
  caFile: unset({
    doc: 'PEM file of the certificate authorities to trust, here and for auth.caFile, instead of the built-in roots. Read again when it changes.',
    format: text('a path'),
    env: 'SIDECAR_CA_FILE',
  }),
};

export const auth = {
  url: unset({
    doc: 'Base URL of the authorization server; auth.tokenPath is appended.',
    format: baseUrl('https://login.example.com'),
    env: 'SIDECAR_AUTH_URL',
    required: "the authorization server's base URL, such as https://login.example.com",
  }),
  tokenPath: setting({
    doc: 'Path of the token endpoint below auth.url.',
    format: urlPath(),
    default: '/oauth/token',
    env: 'SIDECAR_AUTH_TOKEN_PATH',
  }),
  clientId: unset({
    doc: 'The client identifier. Either this or auth.clientIdFile is required.',
    format: secret('a client id: text without colon or control characters', clientIdFault),
    env: 'SIDECAR_CLIENT_ID',
    sensitive: true,
  }),
  clientIdFile: unset({
    doc: 'File that holds the client identifier; one line end at its end is dropped. Read anew when needed.',
    format: text('a path'),
    env: 'SIDECAR_CLIENT_ID_FILE',
  }),
  clientSecret: unset({
    doc: 'The client secret. Either this or auth.clientSecretFile is required; a file is the safer of the two.',
    format: secret('a client secret: text without control characters', secretFault),
    env: 'SIDECAR_CLIENT_SECRET',
    sensitive: true,
  }),
  clientSecretFile: unset({
    doc: 'File that holds the client secret; one line end at its end is dropped. Read anew when needed.',
    format: text('a path'),
    env: 'SIDECAR_CLIENT_SECRET_FILE',
  }),
  audience: unset({
    doc: 'The audience to ask a token for, usually a URL. At least one of this and auth.scope is required.',
    format: audience(),
    env: 'SIDECAR_AUDIENCE',
  }),
  scope: unset({
    doc: 'The scopes to ask a token for, separated by one blank. At least one of this and auth.audience is required.',
    format: scope(),
    env: 'SIDECAR_SCOPE',
  }),
  timeoutMs: setting({
    doc: 'Longest time for one token request, from connecting to the last byte of the answer.',
    format: wholeNumber(1, HOUR_MS),
    default: 10_000,
    env: 'SIDECAR_AUTH_TIMEOUT_MS',
  }),
  caFile: unset({
    doc: 'PEM file of the certificate authorities to trust for the token endpoint alone; without it, upstream.caFile.',
    format: text('a path'),
    env: 'SIDECAR_AUTH_CA_FILE',
  }),
  invalidationCooldownMs: setting({
    doc: 'Shortest time between two refreshes that a 401 of the API causes; doubles up to 300000 while fresh tokens are refused too.',
    format: wholeNumber(1, 300_000),
    default: 5000,
    env: 'SIDECAR_AUTH_INVALIDATION_COOLDOWN_MS',
  }),
};

export const throttle = {
  rate: setting<number | 'auto'>({
    doc: "Permits per second; auto learns the rate from the upstream's rate-limit answers.",
    format: rate(1_000_000),
    default: 'auto',
    env: 'SIDECAR_RATE',
  }),
  burst: setting({
    doc: 'Permits that may be saved up while nothing is sent; unused with auto.',
    format: wholeNumber(1, 1_000_000),
    default: 1,
    env: 'SIDECAR_BURST',
  }),
  maxInFlight: setting({
    doc: 'Requests that may be under way at the upstream at once.',
    format: wholeNumber(1, 100_000),
    default: 64,
    env: 'SIDECAR_MAX_IN_FLIGHT',
  }),
  maxStreams: setting({
    doc: 'Event streams and upgraded connections that may be open at once; they do not count in throttle.maxInFlight.',
    format: wholeNumber(0, 100_000),
    default: 100,
    env: 'SIDECAR_THROTTLE_MAX_STREAMS',
  }),
  maxPauseMs: setting({
    doc: 'While the upstream asks for a longer pause than this, new requests are refused at once, but for one probe per interval.',
    format: wholeNumber(1000, DAY_MS),
    default: 300_000,
    env: 'SIDECAR_THROTTLE_MAX_PAUSE_MS',
  }),
};

export const queue = {
  max: setting({
    doc: 'Requests that may wait at once; more are refused. With 0 only what can be sent at once is served.',
    format: wholeNumber(0, 1_000_000),
    default: 1000,
    env: 'SIDECAR_QUEUE_MAX',
  }),
  timeoutMs: setting({
    doc: 'Longest time that one request may wait, all its waits together.',
    format: wholeNumber(1, DAY_MS),
    default: 30_000,
    env: 'SIDECAR_QUEUE_TIMEOUT_MS',
  }),
};

export const request = {
  deadlineMs: setting({
    doc: 'Longest time from the arrival of a request to the head of its response, all waits and attempts; a client may shorten it with x-sidecar-timeout-ms.',
    format: wholeNumber(1, DAY_MS),
    default: 60_000,
    env: 'SIDECAR_DEADLINE_MS',
  }),
};

export const retry = {
  attempts: setting({
    doc: 'Attempts per request, the first included; retries after a 429 are not counted here.',
    format: wholeNumber(1, 100),
    default: 4,
    env: 'SIDECAR_RETRY_ATTEMPTS',
  }),
  unsafeOn429: setting({
    doc: 'Whether requests of every method are retried after a 429 (a rate-limited call was not carried out); false: idempotent methods only.',
    format: toggle(),
    default: true,
    env: 'SIDECAR_RETRY_UNSAFE_ON_429',
  }),
  trustIdempotencyKey: setting({
    doc: 'Whether a request with an Idempotency-Key field is retried as if its method were idempotent.',
    format: toggle(),
    default: false,
    env: 'SIDECAR_RETRY_TRUST_IDEMPOTENCY_KEY',
  }),
  replayBufferBytes: setting({
    doc: 'Longest request body that is kept for a retry; a longer one streams once and is not replayed.',
    format: wholeNumber(0, 1024 * MIB),
    default: MIB,
    env: 'SIDECAR_REPLAY_BUFFER_BYTES',
  }),
  replayTotalBytes: setting({
    doc: 'Bytes kept for retries by all requests together; past it, bodies stream once and are not replayed.',
    format: wholeNumber(0, 65_536 * MIB),
    default: 32 * MIB,
    env: 'SIDECAR_REPLAY_TOTAL_BYTES',
  }),
};

export const fleet = {
  redisUrl: unset({
    doc: 'Redis that replicas share one quota through. Not built yet: leave it unset. A password in it is a secret.',
    format: redisUrl(),
    env: 'SIDECAR_REDIS_URL',
  }),
};
