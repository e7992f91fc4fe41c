/** Reads a JSON value entry by entry, so that a misspelt name is an error and not another experiment. */

/** Reads entries of an object, and reports those that were not read. */
export class Reader {
  readonly #left: Map<string, unknown>;
  readonly #what: string;

  constructor(json: unknown, what: string) {
    if (typeof json !== 'object' || json === null || Array.isArray(json)) throw new Error(`${what} must be an object`);
    this.#left = new Map(Object.entries(json));
    this.#what = what;
  }

  take(name: string): unknown {
    const value = this.#left.get(name);
    this.#left.delete(name);
    if (value === undefined) throw new Error(`${this.#what} needs "${name}"`);
    return value;
  }

  text(name: string): string {
    const value = this.take(name);
    if (typeof value !== 'string') throw new Error(`"${name}" must be a text`);
    return value;
  }

  number(name: string): number {
    return numberFrom(this.take(name), name);
  }

  optional<T>(name: string, parse: (value: unknown) => T): T | undefined {
    return this.#left.has(name) ? parse(this.take(name)) : undefined;
  }

  list<T>(name: string, otherwise: readonly T[], parse: (value: unknown) => T): readonly T[] {
    if (!this.#left.has(name)) return otherwise;
    const value = this.take(name);
    if (!Array.isArray(value) || value.length === 0) throw new Error(`"${name}" must be a list with something in it`);
    return value.map(parse);
  }

  end(): void {
    const [unknown] = this.#left.keys();
    if (unknown !== undefined) throw new Error(`${this.#what} has an unknown entry "${unknown}"`);
  }
}

/** @throws Error that names the entry */
export function numberFrom(value: unknown, name: string): number {
  if (typeof value !== 'number' || !(value >= 0)) throw new Error(`"${name}" must be a number above or equal to 0`);
  return value;
}
