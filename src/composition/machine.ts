/** Reads the resources of this process once, at the start. budgets.ts computes the limits from them. */
import { readdirSync, readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import type { Config } from '../config/config.ts';
import type { EventObserver } from '../telemetry/events.ts';
import { computeDemand, planBudgets, type Budgets, type Machine } from './budgets.ts';

/**
 * Returns what computes the limits of this process, at the start and after each reload. It emits a warning for each that is lower than the
 * configuration asks for, and throws at the start when the resources are not enough for one client: no setting that decides this can be reloaded.
 */
export function createBudgetPlanner(
  { machine = readMachine(), startTracer }: { readonly machine?: Machine | undefined; readonly startTracer?: unknown },
  observe: EventObserver,
): (config: Config) => Budgets {
  return (config) => {
    const { budgets, warnings } = planBudgets(machine, computeDemand(config, startTracer !== undefined));
    for (const message of warnings) observe({ kind: 'warning', message });
    return budgets;
  };
}

function readMachine(): Machine {
  const constrainedBytes = process.constrainedMemory();
  return {
    ...readDescriptors(),
    heapLimitBytes: readHeapLimit(),
    memoryLimitBytes: Math.min(constrainedBytes > 0 ? constrainedBytes : Infinity, totalmem()),
  };
}

/** Unknown outside Linux. */
function readDescriptors(): Pick<Machine, 'descriptorLimit' | 'openDescriptors'> {
  try {
    // Node.js raises the soft limit to the hard one at its start.
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1];
    const openDescriptors = readdirSync('/proc/self/fd').length;
    return { descriptorLimit: soft === undefined ? undefined : Number(soft), openDescriptors };
  } catch {
    return { descriptorLimit: undefined, openDescriptors: 0 };
  }
}

/**
 * The limit of the old generation: `--max-old-space-size` if it is set, otherwise 75 percent of V8's heap limit, which includes the
 * young generation.
 */
function readHeapLimit(): number {
  const flags = [...(process.env.NODE_OPTIONS ?? '').split(/\s+/), ...process.execArgv];
  const sizes = flags.flatMap((flag) => /^--max[-_]old[-_]space[-_]size=(\d+)$/.exec(flag)?.[1] ?? []);
  const mebibytes = Number(sizes.at(-1) ?? 0);
  return mebibytes > 0 ? mebibytes * 1024 * 1024 : 0.75 * getHeapStatistics().heap_size_limit;
}
