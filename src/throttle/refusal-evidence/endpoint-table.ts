/** Numbers for endpoints (pure). Bounded: what does not fit shares the number 0. */
import { describeEndpoint } from '../endpoint.ts';

const SIZE = 64;

export class EndpointTable {
  /** Numbers are below this. */
  static readonly size = SIZE;
  readonly #numbers = new Map<string, number>();

  /** 0 when the table is full. */
  find(method: string, path: string): number {
    const form = describeEndpoint(method, path);
    const known = this.#numbers.get(form);
    if (known !== undefined) return known;
    const next = this.#numbers.size + 1;
    if (next >= SIZE) return 0;
    this.#numbers.set(form, next);
    return next;
  }

  clear(): void {
    this.#numbers.clear();
  }
}
