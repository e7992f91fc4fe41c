/** Stops a sidecar in the reverse order of its start, so that no accepted request is lost (invariant 10). */
import type { Server } from 'node:http';
import { waitAtMost } from '../platform/clock.ts';
import { closeBoundServers, type BoundServers } from '../listener/bind.ts';
import type { ProxyServer } from '../listener/proxy-server.ts';
import type { Observation } from './observation.ts';
import type { Reloader } from './reload.ts';
import type { RoutesOptions, RunningRoutes } from './routes.ts';

/** The longest wait for connections in the kernel's backlog. */
const MAX_BACKLOG_WAIT_MS = 1000;
/** For the replies to aborted requests. */
const FINAL_REPLIES_MS = 500;
/** For late requests on connections that were opened before the port closed. */
const LATE_REQUESTS_MS = 200;
/** For writing the state file to a slow disk. */
const STATE_WRITE_TIMEOUT_MS = 500;

/** The parts of one sidecar. */
export interface SidecarParts extends RoutesOptions {
  readonly observation: Observation;
  readonly routes: RunningRoutes;
  readonly reloader: Reloader;
  readonly proxy: ProxyServer;
  readonly drainState: { isDraining: boolean };
}

/** Stops the parts of a sidecar that could not bind a port. */
export async function abandon(
  { routes, sharing, unknownCalls }: SidecarParts,
  admin: BoundServers<Server> | undefined,
): Promise<void> {
  for (const source of routes.tokens.values()) source.stop();
  for (const throttle of routes.throttles.values()) throttle.shutDown();
  await sharing?.close();
  unknownCalls?.close();
  if (admin !== undefined) closeBoundServers(admin);
}

/**
 * Ends readiness, then new connections, then requests under way, then the admin port, all within `shutdown.drainMs`.
 * @returns the number of requests that were aborted
 */
export async function drain(running: SidecarParts, admin: BoundServers<Server>): Promise<number> {
  const { config, observation, routes, clock, observe, proxy, drainState, sharing, learned, unknownCalls } = running;
  const { drainMs, delayMs } = config.shutdown;
  const endsAt = clock.now() + drainMs;
  drainState.isDraining = true;
  observe({ kind: 'draining', ...sumThrottles(routes.throttles), drainMs });
  proxy.startClosing();
  if (delayMs > 0) await new Promise<void>((resolve) => clock.after(delayMs, resolve));
  // Closing the port would reset connections in the backlog.
  await proxy.connections.whenBacklogAccepted(Math.min(MAX_BACKLOG_WAIT_MS, drainMs / 10));
  proxy.stopAccepting();
  const finalRepliesMs = Math.min(FINAL_REPLIES_MS, drainMs / 10);
  const finalClosesMs = finalRepliesMs / 5;
  const closesAt = endsAt - finalClosesMs;
  const cut = await finishOrAbort(running, closesAt - finalRepliesMs - clock.now(), finalRepliesMs);
  // Requests that arrive on idle connections meanwhile get DRAINING.
  await waitAtMost(proxy.connections.whenEmpty(), clock, Math.min(LATE_REQUESTS_MS, closesAt - clock.now()));
  proxy.closeConnections();
  // A request is recorded when its connection has closed.
  await waitAtMost(proxy.activeRequests.whenIdle(), clock, finalClosesMs);
  const tokens = [...routes.tokens.values()];
  for (const source of tokens) source.stop();
  await waitAtMost(Promise.all(tokens.map(async (source) => source.whenKept)), clock, endsAt - clock.now());
  await routes.closeUpstreams();
  unknownCalls?.close();
  if (learned !== undefined) await waitAtMost(learned.file.stop(), clock, STATE_WRITE_TIMEOUT_MS);
  await sharing?.close();
  observe({ kind: 'stopped', cut });
  observation.sampler.stop();
  closeBoundServers(admin);
  return cut;
}

/** Waits at most `leftMs` for the requests under way, then aborts the rest. @returns the number of aborted requests */
async function finishOrAbort(
  { proxy, routes, clock }: SidecarParts,
  leftMs: number,
  finalRepliesMs: number,
): Promise<number> {
  await waitAtMost(proxy.activeRequests.whenIdle(), clock, leftMs);
  // The queue refuses waiting requests itself, so that they are counted as rejected by the queue.
  for (const throttle of routes.throttles.values()) throttle.shutDown();
  const cut = proxy.abortAll();
  if (cut > 0) await waitAtMost(proxy.activeRequests.whenIdle(), clock, finalRepliesMs);
  return cut;
}

function sumThrottles(throttles: RunningRoutes['throttles']): { inFlight: number; queued: number } {
  let [inFlight, queued] = [0, 0];
  for (const throttle of throttles.values()) {
    const state = throttle.state();
    inFlight += state.inFlight;
    queued += state.queued;
  }
  return { inFlight, queued };
}
