/**
 * Reloads the configuration of a running sidecar: applies all changes, or none if one of them needs a restart. config/changes knows
 * which keys can change; each part applies its own settings.
 */
import type { ConfigurationState } from '../admin/status/states.ts';
import type { Clock } from '../platform/clock.ts';
import { findChanges } from '../config/changes.ts';
import type { Config } from '../config/config.ts';
import type { LoadedConfig, LoadResult } from '../config/load/load.ts';
import { describeProblem, type ConfigProblem } from '../config/load/problems.ts';
import type { Log } from '../telemetry/log/log.ts';
import { LOG_LEVELS, type EventObserver, type ReloadOutcome } from '../telemetry/events.ts';

export interface ConfigurationSource {
  /** The configuration at the start. */
  readonly loaded: LoadedConfig;
  /** Loads it again; undefined without a file, because then nothing can change. */
  readonly load: (() => LoadResult) | undefined;
}

export interface ReloadOptions {
  /** Undefined when the configuration cannot be loaded again. */
  readonly source: ConfigurationSource | undefined;
  readonly apply: (config: Config) => void;
  readonly log: Pick<Log, 'setLevel' | 'secrets'>;
  readonly clock: Clock;
  readonly observe: EventObserver;
}

export type Reloader = ReturnType<typeof createReloader>;

/** As a file is found that is being written: truncated first. */
const EMPTY_FILE = 'configuration file: it is empty, and was not when it was read before; an empty one needs a restart';

export function createReloader({ source, apply, log, clock, observe }: ReloadOptions) {
  let inForce = source?.loaded;
  let loadedWallAt = clock.wallNow();
  let lastReload: ConfigurationState['lastReload'];
  const report = (outcome: ReloadOutcome, lines: readonly string[]): void => {
    lastReload = { wallAt: clock.wallNow(), outcome, lines };
    observe({ kind: 'configuration-read', outcome, lines });
  };
  const applyConfig = (next: LoadedConfig, lines: readonly string[]): void => {
    const wasQuiet = isQuieter(inForce, next);
    inForce = next;
    loadedWallAt = clock.wallNow();
    apply(next.config);
    const setLevel = (): void => log.setLevel(next.config.log.level);
    // The outcome is logged with the more verbose of the two levels.
    if (wasQuiet) setLevel();
    report('ok', lines);
    for (const message of next.warnings) observe({ kind: 'warning', message });
    setLevel();
  };
  return {
    /** Never throws. Emits the outcome as an event, and keeps it for `state`. */
    reload: (): void => {
      const result = source?.load?.();
      if (result === undefined || inForce === undefined) {
        observe({ kind: 'warning', message: 'there is no configuration file to reload: nothing was changed' });
      } else if (!result.ok) {
        report('invalid', listProblems(result.problems, log));
      } else if (result.isFileEmpty && !inForce.isFileEmpty) {
        report('invalid', [EMPTY_FILE]);
      } else {
        const changes = findChanges(inForce, result);
        const refused = changes.filter(({ isLive }) => !isLive).map(({ key }) => key);
        const applied = changes.flatMap(({ words }) => words ?? []);
        if (refused.length > 0) report('refused', refused);
        else applyConfig(result, applied);
      }
    },
    state: (): ConfigurationState => ({ loadedWallAt, isReloadable: source?.load !== undefined, lastReload }),
    /** The configuration in force; undefined without a source. */
    current: () => inForce,
  };
}

function listProblems(problems: readonly ConfigProblem[], { secrets }: Pick<Log, 'secrets'>): readonly string[] {
  return problems.map((problem) => secrets.mask(describeProblem(problem)));
}

function isQuieter(before: LoadedConfig | undefined, after: LoadedConfig): boolean {
  const levelOf = (loaded: LoadedConfig): number => LOG_LEVELS.indexOf(loaded.config.log.level);
  return before !== undefined && levelOf(before) > levelOf(after);
}
