/** Warns when a server does not state how long its tokens live (`expires_in`, RFC 6749 §5.1), once for each change. */
import type { EventObserver } from '../../telemetry/events.ts';
import type { TokenRequestResult } from './token-response.ts';

export interface AssumedLifetimeOptions {
  readonly credential: string;
  readonly defaultLifetimeMs: number;
  /** Receives the warnings. */
  readonly observe: EventObserver;
}

/** To be called with every result of a token endpoint; failures are ignored. */
export function createLifetimeWarning(options: AssumedLifetimeOptions): (result: TokenRequestResult) => void {
  const { credential, defaultLifetimeMs, observe } = options;
  let lastFault: string | undefined;
  return (result) => {
    if (result.kind !== 'ok') return;
    const { lifetimeFault } = result;
    if (lifetimeFault !== undefined && lifetimeFault !== lastFault) {
      const lifetime = `${String(defaultLifetimeMs)} ms: auth.defaultLifetimeMs (SIDECAR_AUTH_DEFAULT_LIFETIME_MS)`;
      const message = `the token of the credential ${credential} has ${lifetimeFault}; its lifetime is taken to be ${lifetime}`;
      observe({ kind: 'warning', message });
    }
    lastFault = lifetimeFault;
  };
}
