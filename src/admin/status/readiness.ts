/** What /readyz says, as a pure function of the states of the token sources. Fit for a probe that everyone may ask: no detail, no secret. */
import type { TokenState } from '../../token/token.ts';

export interface Readiness {
  readonly ready: boolean;
  readonly reasons: readonly string[];
}

export interface ReadinessInputs {
  readonly draining: boolean;
  /** At least one. */
  readonly tokens: readonly TokenState[];
}

/** Among several credentials each has to be named. */
export function prefixCredential(
  { credential }: TokenState,
  among: readonly TokenState[],
  words: readonly string[],
): readonly string[] {
  return among.length === 1 ? words : words.map((said) => `credential ${credential}: ${said}`);
}

/**
 * The body of /readyz: ready when every credential has a token with life left, and while not draining. Failures of a token endpoint
 * are told, and do not matter as long as the held token lives.
 */
export function describeReadiness({ draining, tokens }: ReadinessInputs): Readiness {
  const reasons = tokens.flatMap((token) => prefixCredential(token, tokens, describeTokenReadiness(token)));
  return {
    ready: !draining && tokens.every((token) => validForMs(token) > 0),
    reasons: [...(draining ? ['draining'] : []), ...reasons],
  };
}

function validForMs(token: TokenState): number {
  return token.status === 'none' ? 0 : (token.validForMs ?? 0);
}

function describeTokenReadiness(token: TokenState): string[] {
  const leftMs = validForMs(token);
  return [
    leftMs > 0 ? `token valid ${Math.floor(leftMs / 1000)} s more` : 'no usable token',
    ...(token.status === 'suspect' ? ['the upstream refused the token; a new one is asked for'] : []),
    ...describeFailures(token),
    ...(token.credentialFault === undefined ? [] : ['new credentials cannot be taken; the older ones are in use']),
  ];
}

/** The words of a failing token endpoint, fit for a probe that anyone may ask: no detail, which may name hosts. */
function describeFailures({ consecutiveFailures, lastFailure }: TokenState): string[] {
  if (consecutiveFailures === 0) return [];
  const times = consecutiveFailures === 1 ? 'once' : `${consecutiveFailures} times in a row`;
  return [`token endpoint failed ${times} (${lastFailure?.outcome ?? 'unknown'})`];
}
