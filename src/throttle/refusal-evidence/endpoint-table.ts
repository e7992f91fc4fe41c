/**
 * Numbers for endpoints (pure): the method and the form of the path, with segments that look like an identifier left out. Bounded: what
 * does not fit shares the number 0.
 */
const SIZE = 64;
const MAX_SEGMENTS = 4;
const IDENTIFIER = /\d|^.{25,}$/;

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

function describeEndpoint(method: string, path: string): string {
  const end = path.indexOf('?');
  const segments = (end < 0 ? path : path.slice(0, end)).split('/', MAX_SEGMENTS + 1);
  return `${method} ${segments.map((segment) => (IDENTIFIER.test(segment) ? '*' : segment)).join('/')}`;
}
