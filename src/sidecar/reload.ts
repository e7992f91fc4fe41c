/**
 * Reads the configuration again while the sidecar runs: all of what has changed is taken over, or nothing. Which keys can be is
 * config/changes.ts's; how each part takes over its own is the part's.
 */
import type { ConfigurationState } from '../admin/status/configuration.ts';
import type { Clock } from '../platform/clock.ts';
import { findChanges, type LoadedConfig } from '../config/changes.ts';
import type { Config } from '../config/config.ts';
import type { LoadResult } from '../config/load/load.ts';
import { describeProblem } from '../config/load/problems.ts';
import { LOG_LEVELS, type EventObserver, type ReloadOutcome } from '../telemetry/events.ts';

/** Where the configuration comes from. */
export interface ConfigurationSource {
  /** The one in force. */
  readonly loaded: LoadedConfig;
  /** Reads it anew; undefined where there is no file, and so nothing that could have changed. */
  readonly load: (() => LoadResult) | undefined;
  readonly setLogLevel: (level: Config['log']['level']) => void;
}

export interface ReloadOptions {
  /** Undefined: it came from nowhere that could be read again. */
  readonly source: ConfigurationSource | undefined;
  /** Takes over what is live; the rest is as it was. */
  readonly apply: (config: Config) => void;
  readonly clock: Clock;
  readonly observe: EventObserver;
}

export interface Reloader {
  /** Never throws. What came of it is told as an event, and kept for `state`. */
  readonly reload: () => void;
  readonly state: () => ConfigurationState;
  /** Undefined: it came from nowhere that is known. */
  readonly current: () => LoadedConfig | undefined;
}

/** What is loaded now is in force. */
export function createReloader({ source, apply, clock, observe }: ReloadOptions): Reloader {
  let inForce = source?.loaded;
  let loadedWallAt = clock.wallNow();
  let lastReload: ConfigurationState['lastReload'];
  const tell = (outcome: ReloadOutcome, lines: readonly string[]): void => {
    lastReload = { wallAt: clock.wallNow(), outcome, lines };
    observe({ kind: 'configuration-read', outcome, lines });
  };
  const takeOver = (next: LoadedConfig, lines: readonly string[]): void => {
    const wasQuiet = isQuieter(inForce, next);
    inForce = next;
    loadedWallAt = clock.wallNow();
    apply(next.config);
    const setLevel = (): void => source?.setLogLevel(next.config.log.level);
    // The line that says so is logged by the more talkative of the two levels.
    if (wasQuiet) setLevel();
    tell('ok', lines);
    for (const message of next.warnings) observe({ kind: 'warning', message });
    setLevel();
  };
  return {
    reload() {
      const read = source?.load?.();
      if (read === undefined || inForce === undefined) {
        observe({ kind: 'warning', message: 'there is no configuration file to be read again: nothing was changed' });
      } else if (!read.ok) {
        tell('invalid', read.problems.map(describeProblem));
      } else {
        const changes = findChanges(inForce, read);
        const refused = changes.filter(({ isLive }) => !isLive).map(({ key }) => key);
        const taken = changes.flatMap(({ words }) => words ?? []);
        if (refused.length > 0) tell('refused', refused);
        else takeOver(read, taken);
      }
    },
    state: () => ({ loadedWallAt, lastReload }),
    current: () => inForce,
  };
}

function isQuieter(before: LoadedConfig | undefined, after: LoadedConfig): boolean {
  const levelOf = (loaded: LoadedConfig): number => LOG_LEVELS.indexOf(loaded.config.log.level);
  return before !== undefined && levelOf(before) > levelOf(after);
}
