/** `npm run soak:keys [-- POSTS SEED]`: POSTs to an API that honours idempotency keys, over connections that break, with and without keys. */
import { runIdempotencyKeys } from '../chaos/idempotency-keys.ts';

const [posts = 5000, seed = 1] = process.argv.slice(2).map(Number);
let violations = 0;
for (const breaker of ['api', 'haproxy'] as const)
  for (const faultShare of [0.02, 0.1])
    for (const isOn of [false, true]) {
      const report = await runIdempotencyKeys({ seed, posts, isOn, breaker, faultShare });
      const { failures, failed, executedTwice, falselyDone, counts } = report;
      violations += executedTwice + falselyDone;
      const setting = isOn ? 'with keys' : 'without keys';
      console.log(`faults of the ${breaker} in ${100 * faultShare} % of the attempts, ${setting}, ${posts} POSTs:`);
      console.log(`  failed for the application ${failed} (${((100 * failed) / posts).toFixed(2)} %)`, failures);
      console.log(`  carried out twice ${executedTwice}, done for the application alone ${falselyDone}`);
      console.log(`  the API: ${JSON.stringify(counts)}`);
    }
process.exitCode = violations === 0 ? 0 : 1;
