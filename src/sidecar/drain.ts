/** The end of a sidecar: lets go in the reverse order of its start, so that nothing that was accepted is lost. */
import type { Server } from 'node:http';
import type { Clock } from '../clock.ts';
import type { Config } from '../config/config.ts';
import type { ExchangeParts } from '../exchange/exchange.ts';
import { closeBound, type Bound } from '../listener/bind.ts';
import type { ProxyServer } from '../listener/proxy-server.ts';

/** How long replies to cut requests may take to leave. */
const LAST_REPLIES_MS = 500;
/** How long requests may still arrive on connections that were opened before the port closed. */
const LATE_REQUESTS_MS = 200;

/** Where in its life the sidecar is. */
export interface Phase {
  isDraining: boolean;
}

/** What is to be let go. */
export interface Running {
  readonly config: Config;
  readonly parts: ExchangeParts;
  readonly proxy: ProxyServer;
  readonly admin: Bound<Server>;
  readonly phase: Phase;
}

/**
 * Readiness goes first, then new connections, then the work in hand, then the admin port; all within `shutdown.drainMs`.
 * @returns how many requests had to be cut
 */
export async function drain({ config, parts, proxy, admin, phase }: Running): Promise<number> {
  const { clock, observe, throttle, tokens, upstream } = parts;
  const { drainMs, delayMs } = config.shutdown;
  const endsAt = clock.now() + drainMs;
  phase.isDraining = true;
  const { inFlight, queued } = throttle.state();
  observe({ kind: 'draining', inFlight, queued, drainMs });
  proxy.startClosing();
  if (delayMs > 0) await new Promise<void>((resolve) => clock.after(delayMs, resolve));
  // Closing the port resets whoever has connected and was not yet looked at.
  await proxy.connections.whenCaughtUp();
  proxy.stopAccepting();
  const lastRepliesMs = Math.min(LAST_REPLIES_MS, drainMs / 10);
  const cut = await finishOrCut(proxy, parts, endsAt - lastRepliesMs - clock.now(), lastRepliesMs);
  // Requests that are on their way on idle connections are answered too, with DRAINING.
  await within(proxy.connections.whenNone(), clock, Math.min(LATE_REQUESTS_MS, endsAt - clock.now()));
  proxy.closeConnections();
  tokens.stop();
  await upstream.close();
  observe({ kind: 'stopped', cut });
  closeBound(admin);
  return cut;
}

/** Waits for the work in hand, at most `leftMs`, then cuts what is left. @returns how many were cut */
async function finishOrCut(
  proxy: ProxyServer,
  { throttle, clock }: ExchangeParts,
  leftMs: number,
  lastRepliesMs: number,
): Promise<number> {
  await within(proxy.active.whenIdle(), clock, leftMs);
  // Whoever waits is refused by the queue itself, and so counted as what they are; their requests end with the others.
  throttle.cut();
  const cut = proxy.cutAll();
  if (cut > 0) await within(proxy.active.whenIdle(), clock, lastRepliesMs);
  return cut;
}

async function within(work: Promise<void>, clock: Clock, delayMs: number): Promise<void> {
  let cancel = (): void => undefined;
  const timeout = new Promise<void>((resolve) => {
    cancel = clock.after(delayMs, resolve);
  });
  await Promise.race([work, timeout]);
  cancel();
}
