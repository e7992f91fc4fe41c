/** What a file of `sandbox --scenario` decides, and the chance in it: the same call of the same seed has the same fate. */
import { hash } from 'node:crypto';
import type { SandboxLimit } from './limits.ts';

export interface SandboxScenario {
  readonly seed: number;
  readonly latencyMs: number;
  readonly jitterMs: number;
  readonly limits: readonly SandboxLimit[];
  /** A share of the calls gets a status and is not carried out, or its response is lost: not begun, or half sent. */
  readonly faults: readonly {
    readonly share: number;
    readonly status?: number | undefined;
    readonly breaks?: 'reset' | 'cut' | undefined;
  }[];
  /** A reader sells nothing. */
  readonly role: 'seller' | 'reader';
  /** What the client may have. */
  readonly scopes: readonly string[];
  /** What the token endpoint says of them. */
  readonly scopeField: 'granted' | 'empty' | 'absent';
  readonly tokenType: string;
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
  limits: [{ calls: 5, per: '1s', window: 'bucket' }],
  faults: [],
  role: 'seller',
  scopes: KNOWN_SCOPES,
  scopeField: 'granted',
  tokenType: 'Bearer',
};

/** @param call counts the calls from 0 */
export function drawFate({ seed, latencyMs, jitterMs, faults }: SandboxScenario, call: number) {
  const chance = hash('sha256', `${String(seed)} ${String(call)}`, 'buffer');
  let drawn = chance.readUInt32BE(0) / 2 ** 32;
  const fault = faults.find(({ share }) => (drawn -= share) < 0);
  return { fault, delayMs: latencyMs + (jitterMs * chance.readUInt32BE(4)) / 2 ** 32 };
}
