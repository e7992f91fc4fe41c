/**
 * A limiter of the benchmark, called by a client that calls in bursts, steadily and not at all, and that waits after a refusal as the
 * governor does. The counters and the history are fed with departures and responses in their order. Draws are the caller's.
 */
import type { Random } from '../../../src/platform/clock.ts';
import { CallLog } from '../../../src/throttle/adaptive/call-log.ts';
import { ClosureHistory } from '../../../src/throttle/adaptive/closure-history.ts';
import { CounterBank, type CountedCall, type CounterKind } from '../../../src/throttle/adaptive/counter-bank.ts';
import { create, type LimiterRule } from '../../bench/governor/limiters.ts';

export interface LimitedTraffic {
  readonly limiter: LimiterRule;
  /** Calls per second that the limiter allows in the long run. */
  readonly perSecond: number;
  /** Seconds that the longest quiet times last. */
  readonly quietSeconds: number;
  readonly kinds: readonly CounterKind[];
  /** Each way, milliseconds: 20, and up to this much more. */
  readonly jitterMs: number;
  /** At the server, for accepted calls. Default 0. */
  readonly serviceMs?: number;
  /** Ends with this closure. */
  readonly closures: number;
  readonly random: Random;
}

/** What was learned from. */
export interface Observed {
  readonly bank: CounterBank;
  readonly history: ClosureHistory;
  /** Mean time from departure to response of accepted calls. */
  readonly roundTripMs: number;
  /** Each refusal that was learned from, with the calls that were not known to be refused at the time. */
  readonly refusals: readonly { readonly call: CountedCall; readonly callsBefore: readonly number[] }[];
}

const FLIGHT_MS = 20;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5000;
const MAX_CALLS = 20_000;

/** Plays until the limiter has refused in so many closures. */
export function observe(traffic: LimitedTraffic): Observed {
  const { perSecond, jitterMs, serviceMs = 0, random } = traffic;
  const server = create({ limiter: traffic.limiter });
  const calls = new CallLog(100_000, 1e9);
  const bank = new CounterBank(traffic.kinds, calls);
  const history = new ClosureHistory(bank);
  const refusals: { call: CountedCall; callsBefore: number[] }[] = [];
  const events: { at: number; run: () => void }[] = [];
  const schedule = (at: number, run: () => void): void => {
    const index = events.findIndex((event) => event.at <= at);
    events.splice(index < 0 ? events.length : index, 0, { at, run });
  };
  const flight = (): number => FLIGHT_MS + random() * jitterMs;
  let [inFlight, atServer, epoch, sent, pausedUntil, pauseMs] = [0, 0, 0, 0, 0, FIRST_PAUSE_MS];
  let [accepted, roundTripsMs] = [0, 0];

  const send = (at: number): void => {
    const call = { at, inFlight: inFlight++ };
    const sentIn = epoch;
    calls.add(at);
    sent++;
    schedule(at + flight(), () => {
      const arrivedAt = now;
      const isAccepted = server.evaluate(arrivedAt, atServer).accepted;
      if (!isAccepted) {
        schedule(arrivedAt + flight(), () => recordRefused(call, sentIn));
        return;
      }
      atServer++;
      schedule(arrivedAt + serviceMs, () => {
        atServer--;
        schedule(now + flight(), () => recordAccepted(call));
      });
    });
  };
  const recordAccepted = (call: CountedCall): void => {
    inFlight--;
    accepted++;
    roundTripsMs += now - call.at;
    pauseMs = FIRST_PAUSE_MS;
    history.recordAccepted(call, jitterMs);
  };
  const recordRefused = (call: CountedCall, sentIn: number): void => {
    inFlight--;
    calls.remove(call.at);
    if (sentIn !== epoch) return;
    epoch++;
    refusals.push({ call, callsBefore: Array.from({ length: calls.size }, (_, index) => calls.at(index)) });
    history.recordRefused(call, jitterMs);
    pausedUntil = now + pauseMs;
    pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2);
  };

  const next = (untilAt: number, gapMs: number): void => {
    if (now >= pausedUntil) send(now);
    if (now < untilAt) {
      schedule(Math.max(now, pausedUntil) - gapMs * Math.log(1 - random()), () => next(untilAt, gapMs));
      return;
    }
    const quietMs = random() < 0.5 ? 0 : random() * traffic.quietSeconds * 1000;
    const stretchMs = (20 + random() * 200) * (1000 / perSecond);
    const nextGapMs = 1000 / (perSecond * (0.5 + random() * 4));
    schedule(now + quietMs, () => next(now + stretchMs, nextGapMs));
  };
  let now = 0;
  schedule(0, () => next(0, 1));
  while (history.closures.length < traffic.closures && sent < MAX_CALLS) {
    const event = events.pop();
    if (event === undefined) break;
    now = event.at;
    event.run();
  }
  return { bank, history, refusals, roundTripMs: roundTripsMs / accepted };
}
