/** Settings of the rate of calls, of the queue, and of the fleet that shares tokens and quotas. */
import { declaredLimits } from './formats/declared-limits.ts';
import { fieldHints } from './formats/field-hints.ts';
import {
  booleanOrAuto,
  booleanValue,
  matching,
  oneOf,
  permitsPerSecond,
  permitsPerSecondOrAuto,
  wholeNumber,
} from './formats/formats.ts';
import { redisUrl } from './formats/redis-url.ts';
import { refusalRules } from './formats/refusal-rules.ts';
import { fileSetting, NO_ENTRIES, setting, settingWithoutDefault } from './setting.ts';

const DAY_MS = 86_400_000;

export const throttle = {
  rate: setting(permitsPerSecondOrAuto, 'auto', {
    doc: "Permits per second; auto learns the rate from the upstream's rate-limit responses.",
    env: 'SIDECAR_RATE',
    isLive: true,
  }),
  mode: setting(oneOf(['enforce', 'observe']), 'enforce', {
    doc: 'observe: limits are counted, and no call is delayed, rejected or repeated for them, throttle.maxInFlight, throttle.maxStreams and queue.max included; refusals go to the client. Metrics, status and log say what enforce would have done. Not in a fleet.',
    isLive: true,
  }),
  maxRate: settingWithoutDefault(permitsPerSecond, {
    doc: 'Permits per second that auto never exceeds; unused with a number for throttle.rate.',
    isLive: true,
  }),
  share: setting(wholeNumber(1, 10_000), 1, {
    doc: 'Number of replicas that share the quota without a fleet: a number for throttle.rate, its burst, throttle.maxRate, throttle.limits and the limits stated by the upstream are divided by it. With 1 and no fleet, configured limits hold for each replica, and several send a multiple. In a fleet, only with throttle.limits: the part of each that a replica uses until it has reached Redis for the first time.',
  }),
  stateFile: fileSetting({
    doc: 'File that keeps the learned limits of auto and the counts of throttle.limits across restarts, in a writable directory; without it a restart learns again and counts from 0. On an emptyDir it ends with the pod. A fleet counts in Redis.',
  }),
  burst: setting(wholeNumber(1, 1_000_000), 1, {
    doc: 'Most permits saved up while nothing is sent; unused with auto.',
    env: 'SIDECAR_BURST',
    isLive: true,
  }),
  maxInFlight: setting(wholeNumber(1, 100_000), 64, {
    doc: 'Most requests in flight at the upstream at once. Where it is given, a response that its client does not read keeps its place.',
    env: 'SIDECAR_MAX_IN_FLIGHT',
    isLive: true,
  }),
  maxStreams: setting(wholeNumber(0, 100_000), 100, {
    doc: 'Most event streams, upgraded connections, and uploads and responses that stalled and gave up their places, at once; they do not count in throttle.maxInFlight.',
    isLive: true,
  }),
  maxPauseMs: setting(wholeNumber(1000, DAY_MS), 300_000, {
    doc: 'While the upstream asks for a longer pause than this, new requests are refused at once, except one probe per interval.',
    isLive: true,
  }),
  limits: setting(declaredLimits, [], {
    doc: 'Limits of the partner that are known, beside throttle.rate: a call takes a permit of all of them. per is a whole number and s, m, h or d, such as 10s, or 1mo. window: sliding (default), or calendar for a part of an hour, 1d or 1mo, of which the last two begin at midnight of timeZone (default UTC). countsRefused (default true): a call that was refused for its rate counts. spread: none (default), or even, which deals out what is left over the time that is left. reserve (default 0): calls kept for requests of high priority. match { methods, path } (default: all calls): it counts the calls with one of these methods, and with this path of the client or one below it; a segment * is any one segment. each (default false): one count for each value of the * segments, 64 at most, and one for the rest. name (default such as per-10s) is in metrics and stored counts.',
    isLive: true,
  }),
  refusals: setting(refusalRules, [], {
    doc: 'Responses that refuse a call for its rate, besides 429: each pauses all calls and is repeated as a 429 is. A rule matches the status, a header field (its name, or its name and value) and a text in the body; all that it names must match. A status that also stands for an outage pauses calls during outages too.',
    isLive: true,
  }),
  assumeRefusals: setting(booleanValue, true, {
    doc: 'With auto, bare 503, 403, 420, 509 and 529 that no rule of throttle.refusals names and that come as those of a rate limit do pace the calls. They are not repeated for it, no call is rejected for it, and one that has waited 5 s is sent.',
    isLive: true,
  }),
  lanes: setting(booleanOrAuto, 'auto', {
    doc: 'With throttle.rate auto, an operation (method and form of the path) that is refused while calls of others are accepted gets a pause and a learned limit of its own, and slows no other. auto: once its refusals have shown it. true: from its first refusal on, calls of other operations test it. false: never. Takes effect at the next start.',
  }),
  hints: setting(fieldHints, NO_ENTRIES, {
    doc: 'Meanings of response header fields in which the upstream states its limits and that are not read otherwise, such as X-Quota-Left: remaining. A field that is read already gets this meaning instead.',
    isLive: true,
  }),
};

export const queue = {
  max: setting(wholeNumber(0, 1_000_000), 1000, {
    doc: 'Most requests waiting at once; more are refused. With 0 only requests that can be sent at once are served.',
    isLive: true,
  }),
  timeoutMs: setting(wholeNumber(1, DAY_MS), 30_000, {
    doc: 'Longest wait of one request, the sum of all its waits.',
    isLive: true,
  }),
};

export const fleet = {
  redisUrl: settingWithoutDefault(redisUrl, {
    doc: 'Redis (7 or later) or Valkey through which replicas share one token for each credential and one quota for each throttle: throttle.rate and the learned rate apply to all replicas together. Without it, and without fleet.redisUrlFile, this process shares nothing. A password in it is a secret.',
    env: 'SIDECAR_REDIS_URL',
  }),
  redisUrlFile: fileSetting({
    doc: 'File that holds the URL of fleet.redisUrl; one trailing line end is dropped. Read again for every connection.',
    env: 'SIDECAR_REDIS_URL_FILE',
  }),
  caFile: fileSetting({
    doc: 'PEM file of the certificate authorities to trust for a rediss: URL, instead of the built-in roots. Read again for every connection.',
  }),
  keyPrefix: setting(matching(/^[\w.:-]{1,64}$/, '1 to 64 letters, digits or characters of "_.:-"'), 'bearer-sidecar', {
    doc: 'Prefix of every key, followed by a colon. Replicas with different prefixes share nothing.',
  }),
  timeoutMs: setting(wholeNumber(1, 1000), 100, {
    doc: 'Longest wait for the reply to one command; after that this process continues alone.',
  }),
};
