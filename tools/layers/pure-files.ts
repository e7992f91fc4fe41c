/**
 * The files that decide and never act: time, chance and answers are handed in. One list for the two checkers that
 * guard it: dependency-cruiser (no platform modules) and ESLint (no clock, timer or chance as a global).
 */

/** Globs from the repository's root. */
export const PURE_FILES = [
  'src/admin/control/quit.ts',
  'src/admin/alerts/{active-alerts,alert-counters,alert-rules}.ts',
  'src/admin/history/{event-descriptions,event-log,history,latency-histogram,minutes,recent-calls,scope-refusals}.ts',
  'src/admin/page/{advice,calls-part,format,fragments,health-summary,markup,throttle-part,token-part,traffic-parts,usage-part,view}.ts',
  'src/admin/status/{configuration,degradation,instant,readiness,status,status-shape}.ts',
  'src/platform/egress/proxy-fault.ts',
  'src/commands/init/auth-address.ts',
  'src/commands/init/curl/*.ts',
  'src/commands/init/partner-text.ts',
  'src/platform/errors.ts',
  'src/platform/host-header.ts',
  'src/platform/http-date.ts',
  'src/platform/memoize.ts',
  'src/platform/secret-redaction.ts',
  'src/platform/loopback.ts',
  'src/listener/listener-errors.ts',
  'src/listener/allow-list.ts',
  'src/listener/{guard,header-selector,route-table}.ts',
  'src/listener/request-preferences.ts',
  'src/platform/egress/proxy-fault.ts',
  'src/platform/{connection-error-texts,errors,host-header,http-date,loopback,memoize,secret-redaction}.ts',
  'src/sidecar/budgets.ts',
  'src/exchange/refusals/refusal-rules.ts',
  'src/retry/backoff.ts',
  'src/retry/budget.ts',
  'src/retry/policy.ts',
  'src/throttle/adaptive/{call-log,closure-history,counter-bank,learned-rate-policy,learned-state,learning-parameters,limit-choice,limit-in-use,limit-probe,limit-snapshot,round-trip-estimator}.ts',
  'src/fleet/shared-quota/{call-report,clock-offset,exchange-timing,fleet-leader,fleet-limit-learner,fleet-permit-source,fleet-rate-policy,leader-election,quota-lease,quota-store,report-buffer,scheduled-permits}.ts',
  'src/throttle/pacing/{governor,governor-contract,pause,permit-bucket,permit-gate,permit-source,quota-tracker,rate-policy,stated-allowance}.ts',
  'src/throttle/queue/{admission-check,caller-queue,expiry-heap,fair-order,heap,linked-queue,rank-counts,request-queue,round-robin}.ts',
  'src/throttle/signals/{divide-signal,header-values,hint-meanings,hinted-quotas,observed-signal-context,plain-quotas,rate-limit-signal,signal-shapes,stated-quota,structured-quotas,unread-fields,vendor-fields}.ts',
  'src/token/token.ts',
  'src/token/endpoint/{echo-filter,granted-scope,json-object,server-metadata,token-request,token-response,token-url}.ts',
  'src/token/source/{invalidation-cooldown,refresh-schedule,suspend-aware-clock,token-circuit-breaker,token-event,token-fetcher}.ts',
  'src/token/store/{shared-token-store,wait-budget}.ts',
  'src/upstream/{circuit-breaker,client-view,cookies,failure,headers,references,request-target}.ts',
];
