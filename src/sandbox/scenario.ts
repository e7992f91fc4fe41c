/** What a scenario decides of the simulated partner, and its chance: the same call of the same seed has the same fate. */
import { hash } from 'node:crypto';
import type { SandboxLimit } from './limits.ts';

export interface SandboxScenario {
  readonly seed: number;
  /** Before each response of the API, and up to how much longer. */
  readonly latencyMs: number;
  readonly jitterMs: number;
  readonly limits: readonly SandboxLimit[];
  readonly faults: readonly SandboxFault[];
  /** Of the client: a reader sells nothing. */
  readonly role: 'seller' | 'reader';
  /** Those that the client may have. */
  readonly scopes: readonly string[];
  /** What the token endpoint says of the scopes that it has granted. */
  readonly scopeField: 'granted' | 'empty' | 'absent';
  readonly tokenType: 'Bearer' | 'bearer' | 'BEARER';
}

/** What a share of the calls meets: a status instead of being carried out, or the loss of the response, which is not begun or half sent. */
export interface SandboxFault {
  readonly share: number;
  readonly status?: number | undefined;
  readonly breaks?: 'reset' | 'cut' | undefined;
}

/** The scope names that were seen at the real service, with `example` in the vendor's place. */
export const POLICIES_SCOPE = 'urn:example.partners.sales.individual.travel.policies.write';
export const QUOTES_SCOPE = 'urn:example.partners.sales.individual.travel.quotesrequests.write';
export const KNOWN_SCOPES: readonly string[] = [POLICIES_SCOPE, QUOTES_SCOPE];

export const DEFAULT_SCENARIO: SandboxScenario = {
  seed: 1,
  latencyMs: 0,
  jitterMs: 0,
  // A shell loop reaches it, a first try does not.
  limits: [{ rate: 5, burst: 5, match: {} }],
  faults: [],
  role: 'seller',
  scopes: KNOWN_SCOPES,
  scopeField: 'granted',
  tokenType: 'Bearer',
};

/** @param call counts the calls from 0 */
export function drawFate({ seed, latencyMs, jitterMs, faults }: SandboxScenario, call: number) {
  let drawn = drawShare(seed, call, 'fault');
  const fault = faults.find(({ share }) => (drawn -= share) < 0);
  return { fault, delayMs: latencyMs + jitterMs * drawShare(seed, call, 'latency') };
}

/** From 0 to below 1. */
function drawShare(...words: readonly (string | number)[]): number {
  return hash('sha256', words.join(' '), 'buffer').readUInt32BE() / 2 ** 32;
}
