/**
 * When a server does not state how long a token lives (`expires_in`, RFC 6749 §5.1): a token that it sends again ends when it was to end
 * before (WSO2, PayPal); for another one a lifetime is assumed, with one warning for each change.
 */
import { SuspendAwareClock } from '../source/suspend-aware-clock.ts';
import type { TokenPartOptions } from '../source/token-fetcher.ts';
import type { TokenRequestResult, TokenResponseForm } from './token-response.ts';

/** A token that is sent again for longer than this after its stated end has another one. */
const MAX_LATE_MS = 4_500;

export function withKnownLifetimes<A extends readonly unknown[]>(
  send: (...request: A) => Promise<TokenRequestResult>,
  {
    credential,
    defaultLifetimeMs,
    clock,
    observe,
  }: Omit<TokenPartOptions, 'random'> & Pick<TokenResponseForm, 'defaultLifetimeMs'>,
): (...request: A) => Promise<TokenRequestResult> {
  let lastFault: string | undefined;
  let stated = { value: '', endsAt: -Infinity };
  const suspendAware = new SuspendAwareClock(clock);
  return async (...request) => {
    const startedAt = suspendAware.now();
    const result = await send(...request);
    if (result.kind !== 'ok') return result;
    const { lifetimeFault, ...token } = result;
    const leftMs = stated.endsAt - startedAt;
    if (lifetimeFault === undefined) stated = { value: token.value, endsAt: startedAt + token.lifetimeMs };
    else if (token.value === stated.value && leftMs > -MAX_LATE_MS)
      return { ...token, lifetimeMs: leftMs, endsAsKnown: true };
    else if (lifetimeFault !== lastFault) {
      const lifetime = `${String(defaultLifetimeMs)} ms: auth.defaultLifetimeMs (SIDECAR_AUTH_DEFAULT_LIFETIME_MS)`;
      const message = `the token of the credential ${credential} has ${lifetimeFault}; its lifetime is taken to be ${lifetime}`;
      observe({ kind: 'warning', message });
    }
    lastFault = lifetimeFault;
    return result;
  };
}
