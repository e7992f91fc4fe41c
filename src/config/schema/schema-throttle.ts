/** Settings of the rate of calls and of the queue. */
import type { RefusalRule } from '../../throttle/refusal-rule.ts';
import { fieldHints } from './formats/field-hints.ts';
import type { TextMap } from './formats/formats.ts';
import { permitsPerSecond, rate, text, wholeNumber } from './formats/formats.ts';
import { refusalRules } from './formats/refusal-rules.ts';
import { setting, settingWithoutDefault } from './setting.ts';

const DAY_MS = 86_400_000;
/** Permits per second. */
const MAX_RATE = 1_000_000;

export const throttle = {
  rate: setting<number | 'auto'>({
    doc: "Permits per second; auto learns the rate from the upstream's rate-limit responses.",
    format: rate(MAX_RATE),
    default: 'auto',
    env: 'SIDECAR_RATE',
  }),
  maxRate: settingWithoutDefault({
    doc: 'Permits per second that auto never exceeds; unused with a number for throttle.rate.',
    format: permitsPerSecond(MAX_RATE),
    env: 'SIDECAR_THROTTLE_MAX_RATE',
  }),
  share: setting({
    doc: 'Number of replicas that share the quota without a fleet: a number for throttle.rate, its burst, throttle.maxRate and the limits stated by the upstream are divided by it.',
    format: wholeNumber(1, 10_000),
    default: 1,
    env: 'SIDECAR_THROTTLE_SHARE',
  }),
  stateFile: settingWithoutDefault({
    doc: 'File that keeps the learned limits of auto across restarts, in a writable directory; without it a restart learns again.',
    format: text('a path'),
    env: 'SIDECAR_THROTTLE_STATE_FILE',
  }),
  burst: setting({
    doc: 'Most permits saved up while nothing is sent; unused with auto.',
    format: wholeNumber(1, 1_000_000),
    default: 1,
    env: 'SIDECAR_BURST',
  }),
  maxInFlight: setting({
    doc: 'Most requests in flight at the upstream at once.',
    format: wholeNumber(1, 100_000),
    default: 64,
    env: 'SIDECAR_MAX_IN_FLIGHT',
  }),
  maxStreams: setting({
    doc: 'Most event streams, upgraded connections and stalled uploads at once; they do not count in throttle.maxInFlight.',
    format: wholeNumber(0, 100_000),
    default: 100,
    env: 'SIDECAR_THROTTLE_MAX_STREAMS',
  }),
  maxPauseMs: setting({
    doc: 'While the upstream asks for a longer pause than this, new requests are refused at once, except one probe per interval.',
    format: wholeNumber(1000, DAY_MS),
    default: 300_000,
    env: 'SIDECAR_THROTTLE_MAX_PAUSE_MS',
  }),
  refusals: setting<readonly RefusalRule[]>({
    doc: 'Responses that refuse a call for its rate, besides 429: each pauses all calls and is repeated as a 429 is. A rule matches the status, a header field (its name, or its name and value) and a text in the body; all that it names must match. A status that also stands for an outage pauses calls during outages too.',
    format: refusalRules(),
    default: [],
    env: 'SIDECAR_THROTTLE_REFUSALS',
  }),
  hints: setting<TextMap>({
    doc: 'Meanings of response header fields in which the upstream states its limits and that are not read otherwise, such as X-Quota-Left: remaining. A field that is read already gets this meaning instead.',
    format: fieldHints(),
    default: {},
    env: 'SIDECAR_THROTTLE_HINTS',
  }),
};

export const queue = {
  max: setting({
    doc: 'Most requests waiting at once; more are refused. With 0 only requests that can be sent at once are served.',
    format: wholeNumber(0, 1_000_000),
    default: 1000,
    env: 'SIDECAR_QUEUE_MAX',
  }),
  timeoutMs: setting({
    doc: 'Longest wait of one request, the sum of all its waits.',
    format: wholeNumber(1, DAY_MS),
    default: 30_000,
    env: 'SIDECAR_QUEUE_TIMEOUT_MS',
  }),
};
