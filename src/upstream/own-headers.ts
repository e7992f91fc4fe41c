/** The header fields that the sidecar adds to each call of a route: the token, and the fixed ones that a partner asks for. */
import { createRequestHeaderFilter } from './headers.ts';
import type { FilterRequestHeaders } from './headers.ts';

export interface OwnHeadersOptions {
  /** The field of the token. */
  readonly tokenHeader: string;
  /** Stands before the token; may be empty. */
  readonly tokenPrefix: string;
  /** Flat list [name, value, …]. */
  readonly fixed: readonly string[];
  /** The name of the field that admits clients to the listener, which is not forwarded. */
  readonly requiredHeader: string | undefined;
}

export class OwnHeaders {
  /** Removes, with everything else that is not forwarded, the client's own fields of these names. */
  readonly filter: FilterRequestHeaders;
  readonly #options: OwnHeadersOptions;
  #fixed: readonly string[];
  #listedFor: string | undefined;
  #listed: readonly string[] = [];

  constructor(options: OwnHeadersOptions) {
    const { tokenHeader, fixed, requiredHeader } = options;
    const fixedNames = fixed.filter((_, at) => at % 2 === 0);
    this.filter = createRequestHeaderFilter([tokenHeader, ...fixedNames, ...(requiredHeader ? [requiredHeader] : [])]);
    this.#options = options;
    this.#fixed = fixed;
  }

  /** The fields of an attempt that is sent now: flat list [name, value, …], each name once. */
  list(token: string): readonly string[] {
    if (token === this.#listedFor) return this.#listed;
    const { tokenHeader, tokenPrefix } = this.#options;
    this.#listedFor = token;
    return (this.#listed = [tokenHeader, tokenPrefix + token, ...this.#fixed]);
  }

  /** @param fixed with the names of the first ones and new values */
  replaceFixed(fixed: readonly string[]): void {
    this.#fixed = fixed;
    this.#listedFor = undefined;
  }
}
