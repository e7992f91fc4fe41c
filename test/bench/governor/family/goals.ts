/** What the governor should reach for a drawn limit after learning (pure). */
import type { MemberFigures } from './after-learning.ts';
import type { Member } from './families.ts';

/** Of the possible calls. */
export const GOODPUT_GOAL = 0.97;
/** More than possible, beyond what latency moves across an edge, is a fault of the benchmark. */
export const IMPOSSIBLE_GOODPUT = 1.005;
const STEPS_GOODPUT_GOAL = 0.95;
export const REFUSED_GOAL = 0.005;
const STEPS_REFUSED_GOAL = 0.01;
const SPURIOUS_FACTOR = 2;
/** One refusal in so many windows is the price of noticing that a limit was raised. */
const WINDOWS_PER_REFUSAL = 30;

export function goodputGoal({ family }: Member): number {
  return family === 'steps' ? STEPS_GOODPUT_GOAL : GOODPUT_GOAL;
}

/** Share of the attempts that may be refused. */
export function refusedGoal({ family, conditions, memoryMs, expectedRate }: Member): number {
  const callsPerWindow = Math.max(1, (expectedRate * memoryMs) / 1000);
  const least = family === 'steps' ? STEPS_REFUSED_GOAL : REFUSED_GOAL;
  return Math.max(least, SPURIOUS_FACTOR * (conditions.spuriousShare ?? 0), 1 / (WINDOWS_PER_REFUSAL * callsPerWindow));
}

export function meetsGoals(member: Member, { goodput, refusedShare }: MemberFigures): boolean {
  return goodput >= goodputGoal(member) && refusedShare <= refusedGoal(member);
}
