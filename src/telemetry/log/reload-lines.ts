/** The log lines of a configuration reload. They hold no secrets. */
import type { Logger } from 'pino';
import type { SidecarEvent } from '../events.ts';
import { truncate } from './log-values.ts';

type ConfigurationRead = Extract<SidecarEvent, { kind: 'configuration-read' }>;

/** One line; for an invalid configuration one line per problem. */
export function logReload(logger: Logger, { outcome, lines }: ConfigurationRead): void {
  switch (outcome) {
    case 'ok':
      logger.info({ changes: lines }, `configuration reloaded${lines.length === 0 ? ': nothing has changed' : ''}`);
      return;
    case 'refused':
      logger.warn({ keys: lines }, 'configuration not reloaded: these keys need a restart, and nothing was changed');
      return;
    case 'invalid':
      for (const problem of lines)
        logger.error({ problem: truncate(problem) }, 'configuration not reloaded: it is invalid');
  }
}
