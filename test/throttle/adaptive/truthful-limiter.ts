/**
 * A limiter of the benchmark, asked by calls whose instants are given, and what an idea of it is told: departures, answers and
 * their order, with a flight time that differs from call to call by no more than the jitter that is allowed for.
 */
import type { Random } from '../../../src/platform/clock.ts';
import { ModelSelector } from '../../../src/throttle/adaptive/model-selector.ts';
import { CallLog } from '../../../src/throttle/adaptive/call-log.ts';
import type { Evidence, LimiterModel } from '../../../src/throttle/adaptive/limiter-model.ts';
import { create, type LimiterRule } from '../../bench/governor/limiters.ts';

/** The logs that ideas are made from. */
export interface Logs {
  readonly accepted: CallLog;
  readonly sent: CallLog;
}

export interface Asking {
  readonly limiter: LimiterRule;
  /** Instants of departure, in order. */
  readonly departures: readonly number[];
  /** Each way, milliseconds: at least this, and up to `jitterMs` more. */
  readonly flightMs: number;
  readonly jitterMs: number;
  /** At the server, for accepted calls. */
  readonly serviceMs?: number;
  readonly random: Random;
  readonly createModels: (logs: Logs) => LimiterModel[];
  /** Called after every answer. */
  readonly look?: (beliefs: ModelSelector, evidence: Evidence, accepted: boolean) => void;
}

interface Call {
  readonly sentAt: number;
  readonly arrivesAt: number;
  readonly backMs: number;
  accepted: boolean;
  answeredAt: number;
}

/** Tells the ideas everything, in the order in which a client learns it. */
export function ask(asking: Asking): ModelSelector {
  const calls = judge(asking);
  const log = (): CallLog => new CallLog(100_000, 1e9);
  const [accepted, sent, pending] = [log(), log(), log()];
  const beliefs = new ModelSelector(asking.createModels({ accepted, sent }));
  const abreast = new Map<Call, number>();
  let acceptedSinceRefusal = 0;
  const events = [
    ...calls.map((call) => ({ at: call.sentAt, call, isAnswer: false })),
    ...calls.map((call) => ({ at: call.answeredAt, call, isAnswer: true })),
  ].sort((a, b) => a.at - b.at);
  for (const { call, isAnswer } of events) {
    const at = call.sentAt;
    if (!isAnswer) {
      abreast.set(call, pending.size);
      for (const each of [accepted, sent, pending]) each.add(at);
      continue;
    }
    pending.remove(at);
    if (!call.accepted) accepted.remove(at);
    const { jitterMs } = asking;
    const evidence = {
      at,
      jitterMs,
      inFlight: abreast.get(call) ?? 0,
      pending,
      isInformative: acceptedSinceRefusal > 0,
    };
    acceptedSinceRefusal = call.accepted ? acceptedSinceRefusal + 1 : 0;
    if (call.accepted) beliefs.recordAccepted(evidence);
    else beliefs.recordRefused(evidence);
    asking.look?.(beliefs, evidence, call.accepted);
  }
  return beliefs;
}

function judge({ limiter, departures, flightMs, jitterMs, serviceMs = 0, random }: Asking): Call[] {
  const flight = (): number => flightMs + random() * jitterMs;
  const calls = departures.map((sentAt): Call => {
    return { sentAt, arrivesAt: sentAt + flight(), backMs: flight(), accepted: false, answeredAt: NaN };
  });
  const server = create({ limiter });
  const leaving: number[] = [];
  for (const call of calls.toSorted((a, b) => a.arrivesAt - b.arrivesAt)) {
    const inFlight = leaving.filter((at) => at > call.arrivesAt).length;
    call.accepted = server.evaluate(call.arrivesAt, inFlight).accepted;
    const leavesAt = call.arrivesAt + (call.accepted ? serviceMs : 0);
    if (call.accepted) leaving.push(leavesAt);
    call.answeredAt = leavesAt + call.backMs;
  }
  return calls;
}
