/**
 * The files that decide and never act: time, chance and answers are handed in. One list for the two checkers that
 * guard it: dependency-cruiser (no platform modules) and ESLint (no clock, timer or chance as a global).
 */

/** Globs from the repository's root. */
export const PURE_FILES = [
  'src/admin/{event-words,happenings,history,latency-counts,minutes,status-shape}.ts',
  'src/admin/page/{facts,fragments,markup,throttle-part,token-part,traffic-parts,verdict,view,words}.ts',
  'src/admin/{configuration,degradation,quit,readiness,status}.ts',
  'src/platform/egress/proxy-fault.ts',
  'src/platform/errors.ts',
  'src/platform/host-field.ts',
  'src/platform/http-date.ts',
  'src/platform/remembered.ts',
  'src/platform/secret-forms.ts',
  'src/platform/loopback.ts',
  'src/listener/faults.ts',
  'src/listener/allow-list.ts',
  'src/listener/{guard,route-table}.ts',
  'src/listener/wishes.ts',
  'src/platform/egress/proxy-fault.ts',
  'src/platform/{errors,host-field,http-date,loopback,remembered,secret-forms}.ts',
  'src/sidecar/budgets.ts',
  'src/retry/backoff.ts',
  'src/retry/budget.ts',
  'src/retry/policy.ts',
  'src/throttle/governor*.ts',
  'src/throttle/permit-bucket.ts',
  'src/throttle/fleet-{board,clock,leader,leadership,mind,outbox,pace,report,schedule,share,slots,terms}.ts',
  'src/throttle/rate-limit-signal.ts',
  'src/throttle/{answer-context,field-values,learned-state,shared-signal,signal-shapes}.ts',
  'src/throttle/learning/*.ts',
  'src/throttle/{plain-quotas,quota-account,stated-quota,structured-quotas}.ts',
  'src/throttle/{caller-line,caller-turns,door,fair-order,heap,rank-counts}.ts',
  'src/throttle/{expiry-heap,gate,pace,pause,stated-allowance,wait-queue,waiting-room}.ts',
  'src/token/{circuit,confidence,granted-scope,invalidation,life-clock,patience,refresh-schedule,server-metadata,settlement,supply,token,token-answer,token-request}.ts',
  'src/upstream/{circuit,failure,fields,location,target}.ts',
];
