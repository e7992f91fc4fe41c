/**
 * The files that decide and never act: time, chance and answers are handed in. One list for the two checkers that
 * guard it: dependency-cruiser (no platform modules) and ESLint (no clock, timer or chance as a global).
 */

/** Globs from the repository's root. */
export const PURE_FILES = [
  'src/admin/status.ts',
  'src/errors.ts',
  'src/http-date.ts',
  'src/listener/faults.ts',
  'src/listener/allow-list.ts',
  'src/listener/guard.ts',
  'src/retry/backoff.ts',
  'src/retry/budget.ts',
  'src/retry/policy.ts',
  'src/throttle/governor*.ts',
  'src/throttle/permit-bucket.ts',
  'src/throttle/rate-limit-signal.ts',
  'src/throttle/{expiry-heap,gate,pace,pause,stated-allowance,wait-queue,waiting-room}.ts',
  'src/token/{invalidation,refresh-schedule,token-answer}.ts',
  'src/upstream/{circuit,failure,fields,location,target}.ts',
];
