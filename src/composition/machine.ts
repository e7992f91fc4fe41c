/** Reads the resources of this process once, at the start. budgets.ts computes the limits from them. */
import { readdirSync, readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import type { Config } from '../config/config.ts';
import type { EventObserver } from '../telemetry/events.ts';
import { computeDemand, planBudgets, type Budgets, type Machine } from './budgets.ts';

interface BudgetOptions {
  /** Default: read from this process. */
  readonly machine?: Machine | undefined;
  /** Present when requests are traced. */
  readonly startTracer?: unknown;
}

/**
 * The limits of this process; emits a warning for each that is lower than the configuration asks for.
 * @throws Error when the resources are not enough for one client
 */
export function determineBudgets(
  config: Config,
  { machine, startTracer }: BudgetOptions,
  observe: EventObserver,
): Budgets {
  const decision = planBudgets(machine ?? readMachine(), computeDemand(config, startTracer !== undefined));
  if (decision.kind === 'too-small') throw new Error(decision.problem);
  for (const message of decision.warnings) observe({ kind: 'warning', message });
  return decision.budgets;
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
