/** The end of a sidecar: lets go in the reverse order of its start, so that nothing that was accepted is lost. */
import type { Server } from 'node:http';
import type { ActivityRecorder } from '../admin/history/activity-recorder.ts';
import type { Clock } from '../platform/clock.ts';
import type { Config } from '../config/config.ts';
import { closeBoundServers, type BoundServers } from '../listener/bind.ts';
import type { ProxyServer } from '../listener/proxy-server.ts';
import type { StateFile } from '../throttle/adaptive/state-file.ts';
import type { EventObserver } from '../telemetry/events.ts';
import type { FleetParts } from './fleet.ts';
import type { RunningRoutes } from './routes.ts';

/** How long a port that never falls quiet is looked at before it closes. */
const MAX_BACKLOG_WAIT_MS = 1000;
/** How long replies to cut requests may take to leave. */
const FINAL_REPLIES_MS = 500;
/** How long requests may still arrive on connections that were opened before the port closed. */
const LATE_REQUESTS_MS = 200;
/** How long a slow disk may take with what was learned. */
const STATE_WRITE_TIMEOUT_MS = 500;

/** Where in its life the sidecar is. */
export interface DrainState {
  isDraining: boolean;
}

/** What is to be let go. */
export interface RunningSidecar {
  readonly config: Config;
  readonly routes: Pick<RunningRoutes, 'tokens' | 'throttles' | 'closeUpstreams'>;
  readonly clock: Clock;
  readonly observe: EventObserver;
  readonly proxy: ProxyServer;
  readonly admin: BoundServers<Server>;
  readonly drainState: DrainState;
  readonly activity: Pick<ActivityRecorder, 'stop'>;
  readonly fleet: Pick<FleetParts, 'close'> | undefined;
  readonly stateFile: StateFile | undefined;
}

/**
 * Readiness goes first, then new connections, then the work in hand, then the admin port; all within `shutdown.drainMs`.
 * @returns how many requests had to be cut
 */
export async function drain(running: RunningSidecar): Promise<number> {
  const { config, routes, clock, observe, proxy, admin, drainState, activity, fleet, stateFile } = running;
  const { drainMs, delayMs } = config.shutdown;
  const endsAt = clock.now() + drainMs;
  drainState.isDraining = true;
  observe({ kind: 'draining', ...sumThrottles(routes.throttles), drainMs });
  proxy.startClosing();
  if (delayMs > 0) await new Promise<void>((resolve) => clock.after(delayMs, resolve));
  // Closing the port resets whoever has connected and was not yet looked at.
  await proxy.connections.whenBacklogAccepted(Math.min(MAX_BACKLOG_WAIT_MS, drainMs / 10));
  proxy.stopAccepting();
  const lastRepliesMs = Math.min(FINAL_REPLIES_MS, drainMs / 10);
  const lastEndingsMs = lastRepliesMs / 5;
  const closesAt = endsAt - lastEndingsMs;
  const cut = await finishOrAbort(running, closesAt - lastRepliesMs - clock.now(), lastRepliesMs);
  // Requests that are on their way on idle connections are answered too, with DRAINING.
  await waitAtMost(proxy.connections.whenEmpty(), clock, Math.min(LATE_REQUESTS_MS, closesAt - clock.now()));
  proxy.closeConnections();
  // Each is told of when its connection has closed.
  await waitAtMost(proxy.activeRequests.whenIdle(), clock, lastEndingsMs);
  for (const tokens of routes.tokens.values()) tokens.stop();
  await routes.closeUpstreams();
  if (stateFile !== undefined) await waitAtMost(stateFile.stop(), clock, STATE_WRITE_TIMEOUT_MS);
  await fleet?.close();
  observe({ kind: 'stopped', cut });
  activity.stop();
  closeBoundServers(admin);
  return cut;
}

/** Waits for the work in hand, at most `leftMs`, then cuts what is left. @returns how many were cut */
async function finishOrAbort(
  { proxy, routes, clock }: RunningSidecar,
  leftMs: number,
  lastRepliesMs: number,
): Promise<number> {
  await waitAtMost(proxy.activeRequests.whenIdle(), clock, leftMs);
  // Whoever waits is refused by the queue itself, and so counted as what they are; their requests end with the others.
  for (const throttle of routes.throttles.values()) throttle.shutDown();
  const cut = proxy.abortAll();
  if (cut > 0) await waitAtMost(proxy.activeRequests.whenIdle(), clock, lastRepliesMs);
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

async function waitAtMost(work: Promise<void>, clock: Clock, delayMs: number): Promise<void> {
  let cancel = (): void => undefined;
  const timeout = new Promise<void>((resolve) => {
    cancel = clock.after(delayMs, resolve);
  });
  await Promise.race([work, timeout]);
  cancel();
}
