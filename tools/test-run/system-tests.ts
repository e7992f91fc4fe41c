/**
 * The test files that `npm run test:unit` leaves out: they need a server program or a browser, start the sidecar or other long-running
 * child processes, or run for long by their purpose. test/tools/system-tests.test.ts checks the list. All other files of test/ are unit tests.
 */
export const SYSTEM_TESTS: readonly string[] = [
  // Whole folders.
  'test/bench/**',
  'test/bench-governor/**',
  'test/bodies/**',
  'test/chaos/**',
  'test/deploy/**',
  'test/differential/**',
  'test/docs/**',
  'test/e2e/**',
  'test/hostile/**',
  'test/house/**',
  'test/packaging/**',
  // Redis.
  'test/commands/check/redis.test.ts',
  'test/fleet/redis/{connection-check,script-client,slow-redis,subscriber}.test.ts',
  'test/fleet/shared-*/**',
  'test/composition/fleet.test.ts',
  // nginx or `openssl s_server`.
  'test/commands/check/tls.test.ts',
  'test/exchange/early-responses.test.ts',
  'test/token/endpoint/token-endpoint-tls.test.ts',
  'test/upstream/client-certificate.test.ts',
  // curl.
  'test/commands/init/curl/{partner-commands,real-curl}.test.ts',
  // promtool.
  'test/telemetry/fleet.test.ts',
  'test/telemetry/metrics/metrics.test.ts',
  // Child processes.
  'test/sandbox/in-front.test.ts',
  'test/telemetry/log/blocked-stdout.test.ts',
  'test/token/endpoint/echo-filter.test.ts',
  'test/tools/{bundle,ensure-installed,sidecar-process}.test.ts',
  // Long by their purpose: real time-outs of tunnels, thousands of requests one after another, hours of virtual time, every state.
  'test/listener/websocket/{tunnel-bytes,websocket-ends}.test.ts',
  'test/composition/file-token.test.ts',
  'test/throttle/adaptive/{auto,limit-choice,whole-second-waits}.test.ts',
  'test/throttle/declared/month.test.ts',
  'test/admin/status/reachable-states.test.ts',
];

/** Each has a process of its own. All others share processes. */
export const OWN_PROCESS_TESTS: readonly string[] = [
  // Libraries as they are, before the sidecar mends them for its process.
  'test/peers/**',
  // The memory of the process.
  'test/composition/residue.test.ts',
  'test/exchange/{small-chunks,request-body/replay-body}.test.ts',
];
