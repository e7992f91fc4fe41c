/**
 * The files that decide and never act: time, chance and answers are handed in. One list for the two checkers that
 * guard it: dependency-cruiser (no platform modules) and ESLint (no clock, timer or chance as a global).
 */

/** Globs from the repository's root. */
export const PURE_FILES = [
  'src/admin/control/quit.ts',
  'src/admin/history/{event-words,happenings,history,latency-counts,minutes}.ts',
  'src/admin/page/{facts,fragments,markup,throttle-part,token-part,traffic-parts,verdict,view,words}.ts',
  'src/admin/status/{configuration,degradation,readiness,status,status-shape}.ts',
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
  'src/throttle/adaptive/{beliefs,bucket-model,call-log,calls,doubt,learned-model,learned-pace,learned-state,limiter-model,parameters,round-trip,search,slots-model,trial,window-model}.ts',
  'src/throttle/fleet/fleet-{board,clock,leader,leadership,mind,outbox,pace,report,schedule,share,slots,terms}.ts',
  'src/throttle/pacing/{gate,governor,governor-contract,pace,pause,permit-bucket,quota-account,stated-allowance}.ts',
  'src/throttle/queue/{caller-line,caller-turns,door,expiry-heap,fair-order,heap,rank-counts,wait-queue,waiting-room}.ts',
  'src/throttle/signals/{answer-context,field-values,plain-quotas,rate-limit-signal,shared-signal,signal-shapes,stated-quota,structured-quotas}.ts',
  'src/token/token.ts',
  'src/token/endpoint/{circuit,granted-scope,server-metadata,token-answer,token-request}.ts',
  'src/token/source/{invalidation,life-clock,patience,refresh-schedule,settlement,supply}.ts',
  'src/token/store/confidence.ts',
  'src/upstream/{circuit,failure,fields,location,target}.ts',
];
