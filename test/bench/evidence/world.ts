/**
 * Attempts in virtual time: an application's calls travel to a simulated upstream and back, and the evidence is fed as src/exchange feeds it.
 * Calls that fail are repeated as the retry policy does. Deterministic for a seed.
 */
import type { Random } from '../../../src/platform/clock.ts';
import {
  RefusalEvidence,
  type AttemptSign,
  type RefusalFinding,
} from '../../../src/throttle/refusal-evidence/refusal-evidence.ts';
import { createRandom } from '../governor/seeded.ts';

/** One call of the application. */
export interface Call {
  readonly method: string;
  readonly path: string;
}

/** How the upstream treats one attempt. */
export interface UpstreamReply {
  readonly sign: AttemptSign;
  readonly serviceMs: number;
}

/** @param inFlight attempts that the upstream works on */
export type Upstream = (at: number, call: Call, inFlight: number) => UpstreamReply;

/** `open`: instants of the calls. `closed`: so many workers, each with one call at a time. */
export type Load =
  | { readonly kind: 'open'; readonly arrivals: (random: Random, durationMs: number) => readonly number[] }
  | { readonly kind: 'closed'; readonly workers: number; readonly thinkMs: number };

/** One kind of run. */
export interface Case {
  readonly name: string;
  readonly load: Load;
  readonly upstream: (random: Random) => Upstream;
  /** Default: GET of one of many resources under one path. */
  readonly call?: (at: number, random: Random) => Call;
  readonly durationMs: number;
  /** Retries of failed calls after a backoff. Default 0: the calls are not idempotent. */
  readonly retries?: number;
  /** The application itself calls again so soon after a failed call, at most this many times. Default: it does not. */
  readonly repeats?: { readonly times: number; readonly afterMs: number };
}

export interface CaseResult {
  /** When the first finding was there, milliseconds, which ends the run; undefined without one. */
  readonly foundAtMs: number | undefined;
  readonly finding: RefusalFinding | undefined;
  readonly refused: number;
  readonly calls: number;
}

const NETWORK_MS = { base: 2, jitter: 3 };
const LONGEST_BACKOFF_MS = 250;
const DEFAULT_CALL: Call = { method: 'GET', path: '/quotes/1' };
const NO_REPEATS = { times: 0, afterMs: 0 };

export function runCase(
  { load, upstream: create, call = () => DEFAULT_CALL, durationMs, retries = 0, repeats = NO_REPEATS }: Case,
  seed: number,
): CaseResult {
  const network = createRandom(seed, 'network');
  const calls = createRandom(seed, 'calls');
  const upstream = create(createRandom(seed, 'upstream'));
  const evidence = new RefusalEvidence();
  const events = new EventHeap();
  let [foundAtMs, inFlight, refused, sent]: [number | undefined, number, number, number] = [undefined, 0, 0, 0];
  const travel = (): number => NETWORK_MS.base + network() * NETWORK_MS.jitter;

  const ask = (at: number, made: Call, whenDone: (at: number) => void, repeatsLeft = repeats.times): void => {
    send(at, made, retries, (now, isAccepted) => {
      if (isAccepted || repeatsLeft === 0) whenDone(now);
      else
        events.add(now + repeats.afterMs * (0.5 + calls()), (later) => {
          ask(later, made, whenDone, repeatsLeft - 1);
        });
    });
  };

  const send = (
    at: number,
    made: Call,
    retriesLeft: number,
    whenDone: (at: number, isAccepted: boolean) => void,
  ): void => {
    const attempt = evidence.start(at, retriesLeft < retries);
    sent++;
    events.add(at + travel(), (arrivedAt) => {
      const { sign, serviceMs } = upstream(arrivedAt, made, inFlight);
      inFlight++;
      events.add(arrivedAt + serviceMs, (leftAt) => {
        inFlight--;
        events.add(leftAt + travel(), (now) => {
          if (typeof sign === 'number') refused++;
          evidence.end(attempt, now, sign, made.method, made.path);
          if (foundAtMs === undefined && typeof sign === 'number' && evidence.findings.length > 0) foundAtMs = now;
          if (sign === 'accepted' || retriesLeft === 0) whenDone(now, sign === 'accepted');
          else
            events.add(now + calls() * LONGEST_BACKOFF_MS * 2 ** (retries - retriesLeft), (later) => {
              send(later, made, retriesLeft - 1, whenDone);
            });
        });
      });
    });
  };

  const isFound = (): boolean => foundAtMs !== undefined;
  if (load.kind === 'open') {
    const arrivals = load.arrivals(createRandom(seed, 'arrivals'), durationMs);
    events.run(isFound, arrivals, (now) => {
      ask(now, call(now, calls), () => undefined);
    });
  } else {
    const work = (at: number): void => {
      if (at < durationMs) ask(at, call(at, calls), (now) => events.add(now + load.thinkMs * (0.5 + calls()), work));
    };
    for (let worker = 0; worker < load.workers; worker++) events.add(worker, work);
    events.run(isFound);
  }
  return { foundAtMs, finding: evidence.findings[0], refused, calls: sent };
}

type Action = (at: number) => void;

/** Events in the order of their instants. */
class EventHeap {
  readonly #entries: { readonly at: number; readonly order: number; readonly action: Action }[] = [];
  #added = 0;

  add(at: number, action: Action): void {
    const entries = this.#entries;
    let index = entries.length;
    const entry = { at, order: this.#added++, action };
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = entries[parent];
      if (above === undefined || !isBefore(entry, above)) break;
      entries[index] = above;
      index = parent;
    }
    entries[index] = entry;
  }

  /** @param arrivals instants in their order, merged with the events, which keeps the heap small */
  run(isDone: () => boolean, arrivals: readonly number[] = [], onArrival: Action = () => undefined): void {
    let next = 0;
    while (!isDone()) {
      const arrival = arrivals[next] ?? Infinity;
      if (arrival <= (this.#entries[0]?.at ?? Infinity)) {
        if (arrival === Infinity) return;
        next++;
        onArrival(arrival);
      } else {
        const first = this.#take();
        first?.action(first.at);
      }
    }
  }

  #take(): { readonly at: number; readonly action: Action } | undefined {
    const entries = this.#entries;
    const first = entries[0];
    const last = entries.pop();
    if (last === undefined || entries.length === 0) return first;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      let below = entries[child];
      if (below === undefined) break;
      const other = entries[child + 1];
      if (other !== undefined && isBefore(other, below)) {
        child++;
        below = other;
      }
      if (!isBefore(below, last)) break;
      entries[index] = below;
      index = child;
    }
    entries[index] = last;
    return first;
  }
}

function isBefore(a: { at: number; order: number }, b: { at: number; order: number }): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
