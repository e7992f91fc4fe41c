/**
 * The rules of the fair order, written down as they are documented and with no regard to cost: each decision sorts all tickets that
 * wait. What the real one keeps in heaps and counters is compared with it.
 */
import type { QueueTicket } from '../../../src/throttle/queue/queue-ticket.ts';
import type { Priority } from '../../../src/throttle/throttle.ts';

const STRIDES = { high: 1, normal: 4, low: 64 };
const CLASSES = ['high', 'normal', 'low'] as const;

export class FairModel {
  readonly #places: number;
  readonly #passes = { high: 0, normal: 0, low: 0 };
  #reached = 0;
  readonly outside = new Set<QueueTicket>();
  readonly preparing = new Set<QueueTicket>();
  readonly ready = new Set<QueueTicket>();
  readonly retries = new Set<QueueTicket>();
  /** When each waiting caller came, or last got a permit. */
  readonly #turns = new Map<string, number>();
  #turn = 0;

  constructor(places: number) {
    this.#places = places;
  }

  get all(): QueueTicket[] {
    return [...this.outside, ...this.preparing, ...this.ready, ...this.retries];
  }

  get callers(): number {
    return this.#turns.size;
  }

  get nextReady(): QueueTicket | undefined {
    const [retry] = byAge(this.retries);
    if (retry === undefined) return this.#first(this.ready, (each) => this.#pass(each));
    const own = byAge(this.ready).find((ticket) => lineOf(ticket) === lineOf(retry));
    return own !== undefined && own.arrivalNumber < retry.arrivalNumber ? own : retry;
  }

  /** Who is outside and should have the free place, if there is one. */
  get nextOutside(): QueueTicket | undefined {
    const held = [...this.preparing, ...this.ready];
    if (held.length + this.retries.size >= this.#places) return undefined;
    const inClass = (priority: Priority): number => held.filter((each) => each.queueClass.priority === priority).length;
    const inLine = (line: string): number => held.filter((each) => lineOf(each) === line).length;
    const lowIsFull = inClass('low') >= Math.max(1, Math.floor(this.#places * 0.75));
    const mayRead = [...this.outside].filter((each) => each.queueClass.priority !== 'low' || !lowIsFull);
    return this.#first(mayRead, (each) => this.#pass(each) + inClass(each) * STRIDES[each], inLine);
  }

  enter(ticket: QueueTicket): void {
    const line = lineOf(ticket);
    const { priority } = ticket.queueClass;
    this.#passes[priority] = this.#pass(priority);
    if (!this.#turns.has(line)) this.#turns.set(line, ++this.#turn);
    this.outside.add(ticket);
  }

  place(ticket: QueueTicket): void {
    this.outside.delete(ticket);
    this.preparing.add(ticket);
  }

  /** It has its permit, whether or not others were before it. */
  grant(ticket: QueueTicket): void {
    const { priority } = ticket.queueClass;
    const pass = this.#pass(priority);
    const passes = [...this.ready].map((each) => this.#pass(each.queueClass.priority));
    this.remove(ticket);
    this.#reached = Math.min(pass, ...passes);
    this.#passes[priority] = pass + STRIDES[priority];
    if (this.#turns.has(lineOf(ticket))) this.#turns.set(lineOf(ticket), ++this.#turn);
  }

  remove(ticket: QueueTicket): void {
    for (const set of [this.outside, this.preparing, this.ready, this.retries]) set.delete(ticket);
    const present = [...this.outside, ...this.preparing, ...this.ready].map(lineOf);
    for (const line of this.#turns.keys()) if (!present.includes(line)) this.#turns.delete(line);
  }

  #pass(priority: Priority): number {
    const isThere = [...this.outside, ...this.preparing, ...this.ready].some(
      (each) => each.queueClass.priority === priority,
    );
    if (!isThere && this.#passes[priority] <= this.#reached) return this.#reached + STRIDES[priority];
    return Math.max(this.#passes[priority], this.#reached);
  }

  /** By class, then by round, then by turn, then by age. */
  #first(
    tickets: Iterable<QueueTicket>,
    passOf: (priority: Priority) => number,
    roundOf: (line: string) => number = () => 0,
  ): QueueTicket | undefined {
    const keyOf = (ticket: QueueTicket): number[] => {
      const { priority } = ticket.queueClass;
      const line = lineOf(ticket);
      const turn = this.#turns.get(line) ?? 0;
      return [passOf(priority), CLASSES.indexOf(priority), roundOf(line), turn, ticket.arrivalNumber];
    };
    return [...tickets].sort((one, other) => compare(keyOf(one), keyOf(other)))[0];
  }
}

function lineOf({ queueClass }: QueueTicket): string {
  return `${queueClass.priority} ${queueClass.caller}`;
}

function byAge(tickets: ReadonlySet<QueueTicket>): QueueTicket[] {
  return [...tickets].sort((one, other) => one.arrivalNumber - other.arrivalNumber);
}

function compare(one: readonly number[], other: readonly number[]): number {
  const index = one.findIndex((number, at) => number !== other[at]);
  return index < 0 ? 0 : one[index]! - other[index]!;
}
