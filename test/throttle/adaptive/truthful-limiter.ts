/**
 * A limiter of the benchmark, called at given instants, and limiter models that are fed as a client would feed them: departures and
 * responses in their order. The time on the way varies by no more than the jitter that the models allow for.
 */
import type { Random } from '../../../src/platform/clock.ts';
import { ModelSelector } from '../../../src/throttle/adaptive/model-selector.ts';
import { CallLog } from '../../../src/throttle/adaptive/call-log.ts';
import type { LimiterModel } from '../../../src/throttle/adaptive/limiter-model.ts';
import { create, type LimiterRule } from '../../bench/governor/limiters.ts';

/** The logs that models are made from. */
export interface CallLogs {
  readonly accepted: CallLog;
  readonly sent: CallLog;
}

export interface LimiterCalls<M extends readonly LimiterModel[]> {
  readonly limiter: LimiterRule;
  /** Instants of departure, in order. */
  readonly departures: readonly number[];
  /** Each way, milliseconds: at least this, and up to `jitterMs` more. */
  readonly flightMs: number;
  readonly jitterMs: number;
  /** At the server, for accepted calls. Default 0. */
  readonly serviceMs?: number;
  readonly random: Random;
  readonly createModels: (logs: CallLogs) => M;
  /** Called after every response. */
  readonly onResponse?: (models: M) => void;
}

interface Call {
  readonly sentAt: number;
  readonly arrivesAt: number;
  readonly returnMs: number;
  accepted: boolean;
  respondedAt: number;
}

/** Plays the calls and returns the fed models. */
export function callLimiter<const M extends readonly LimiterModel[]>(options: LimiterCalls<M>): ModelSelector {
  const { jitterMs } = options;
  const calls = evaluateCalls(options);
  const log = (): CallLog => new CallLog(100_000, 1e9);
  const [accepted, sent, pending] = [log(), log(), log()];
  const models = options.createModels({ accepted, sent });
  const selector = new ModelSelector(models);
  const inFlightAtDeparture = new Map<Call, number>();
  let acceptedSinceRefusal = 0;
  const events = [
    ...calls.map((call) => ({ at: call.sentAt, call, isResponse: false })),
    ...calls.map((call) => ({ at: call.respondedAt, call, isResponse: true })),
  ].sort((a, b) => a.at - b.at);
  for (const { call, isResponse } of events) {
    const at = call.sentAt;
    if (!isResponse) {
      inFlightAtDeparture.set(call, pending.size);
      for (const each of [accepted, sent, pending]) each.add(at);
      continue;
    }
    pending.remove(at);
    if (!call.accepted) accepted.remove(at);
    const inFlight = inFlightAtDeparture.get(call) ?? 0;
    const evidence = { at, jitterMs, inFlight, pending, isInformative: acceptedSinceRefusal > 0 };
    acceptedSinceRefusal = call.accepted ? acceptedSinceRefusal + 1 : 0;
    if (call.accepted) selector.recordAccepted(evidence);
    else selector.recordRefused(evidence);
    options.onResponse?.(models);
  }
  return selector;
}

type Traffic = Omit<LimiterCalls<never>, 'createModels' | 'onResponse'>;

function evaluateCalls({ limiter, departures, flightMs, jitterMs, serviceMs = 0, random }: Traffic): Call[] {
  const flight = (): number => flightMs + random() * jitterMs;
  const calls = departures.map((sentAt): Call => {
    return { sentAt, arrivesAt: sentAt + flight(), returnMs: flight(), accepted: false, respondedAt: NaN };
  });
  const server = create({ limiter });
  const leaving: number[] = [];
  for (const call of calls.toSorted((a, b) => a.arrivesAt - b.arrivesAt)) {
    const inFlight = leaving.filter((at) => at > call.arrivesAt).length;
    call.accepted = server.evaluate(call.arrivesAt, inFlight).accepted;
    const leavesAt = call.arrivesAt + (call.accepted ? serviceMs : 0);
    if (call.accepted) leaving.push(leavesAt);
    call.respondedAt = leavesAt + call.returnMs;
  }
  return calls;
}
