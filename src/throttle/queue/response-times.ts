/**
 * How long the upstream takes to respond, from the permit to the response head, by endpoint (pure). Endpoints apart, so that quick calls are not
 * refused for slow ones. Bounded in number, and each endpoint forgets by itself.
 */
import { AgedTimes } from './aged-times.ts';

/** Endpoints with times of their own. */
const MAX_ENDPOINTS = 64;
/** Fewer calls say nothing about the next one. */
const MIN_CALLS = 20;
const ALMOST_ALL = 0.995;
const ALMOST_NONE = 0.01;

export class ResponseTimes {
  readonly #byEndpoint = new Map<string, AgedTimes>();
  /** Those of the endpoints that found no place. */
  readonly #others = new AgedTimes();

  /**
   * Records a call that has ended.
   * @param endpoint as `describeEndpoint` names it
   * @param hasResponded false: the sidecar ended the call before its response, which would have taken longer than `ms`
   */
  record(now: number, endpoint: string, ms: number, hasResponded: boolean): void {
    const times = this.#byEndpoint.get(endpoint) ?? this.#addEndpoint(now, endpoint);
    times.add(now, ms, hasResponded);
  }

  /** Milliseconds within which almost every call responds; 0 while too little is known, Infinity when too few respond. */
  longestMs(now: number, endpoint: string): number {
    return this.#quantileMs(now, endpoint, ALMOST_ALL);
  }

  /** Milliseconds within which almost no call responds; 0 while too little is known, Infinity when too few respond. */
  shortestMs(now: number, endpoint: string): number {
    return this.#quantileMs(now, endpoint, ALMOST_NONE);
  }

  #quantileMs(now: number, endpoint: string, part: number): number {
    const times = this.#byEndpoint.get(endpoint) ?? this.#others;
    return times.count(now) < MIN_CALLS ? 0 : times.quantileMs(now, part);
  }

  /** Only an endpoint without calls of late gives its place to another. */
  #addEndpoint(now: number, endpoint: string): AgedTimes {
    if (this.#byEndpoint.size >= MAX_ENDPOINTS) {
      const [first] = this.#byEndpoint;
      if (first === undefined) return this.#others;
      const [oldest, times] = first;
      this.#byEndpoint.delete(oldest);
      if (times.count(now) > 0) {
        this.#byEndpoint.set(oldest, times);
        return this.#others;
      }
    }
    const times = new AgedTimes();
    this.#byEndpoint.set(endpoint, times);
    return times;
  }
}
