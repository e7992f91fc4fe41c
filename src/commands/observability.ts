/** Opens tracing when the environment asks for it, and joins its observer with that of the log. */
import { systemClock } from '../platform/clock.ts';
import type { Config } from '../config/config.ts';
import { authorizationServerUrl } from '../config/config.ts';
import type { StartTracer } from '../exchange/request-tracer.ts';
import type { EventObserver } from '../telemetry/events.ts';
import type { Log, LogOptions } from '../telemetry/log/log.ts';
import { openTracing } from '../telemetry/tracing/open-tracing.ts';

export interface Observability {
  readonly observe: EventObserver;
  /** Undefined: no tracing. */
  readonly startTracer: StartTracer | undefined;
  /** Sends the remaining spans, waiting at most `timeoutMs`. The log stays open. Never rejects. */
  close(timeoutMs: number): Promise<void>;
}

/** @param log receives the faults of tracing */
export async function openObservability(config: Config, version: string, log: Log): Promise<Observability> {
  const tracing = await openTracing({
    env: process.env,
    version,
    tokenServers: findTokenServers(config),
    clock: systemClock,
    observe: log.observe,
  });
  return {
    observe:
      tracing === undefined
        ? log.observe
        : (event) => {
            log.observe(event);
            tracing.observe(event);
          },
    startTracer: tracing?.startTracer,
    close: async (timeoutMs) => {
      await tracing?.close(timeoutMs);
    },
  };
}

/** The sampling options of the log. */
export function logSamplingOptions({ log }: Config): NonNullable<LogOptions['sampling']> {
  return { share: log.sample, slowMs: log.slowMs, random: Math.random };
}

/** Token endpoint, or issuer, by the name of the credential. */
function findTokenServers({ credentials }: Config): ReadonlyMap<string, URL> {
  return new Map(
    credentials.flatMap(({ name, auth }) => {
      const url = authorizationServerUrl(auth);
      return url === undefined ? [] : [[name, url] as const];
    }),
  );
}
