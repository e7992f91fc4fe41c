/** `npm run soak:keepalive [-- COUNT]`: requests against an upstream that closes idle connections under them. */
import { runKeepAliveRace } from '../chaos/keep-alive-race.ts';

const report = await runKeepAliveRace(Number(process.argv[2] ?? 20_000));
const { gets, failedGets, posts, failedPosts, connections, duplicatedPosts, falselyComplete, violations } = report;
const share = ((100 * failedPosts) / posts).toFixed(2);
console.log(`${gets + posts} requests over ${connections} connections, each closed within 5 ms of its last response`);
console.log(`GET: ${gets}, of which failed: ${failedGets}`);
console.log(`POST: ${posts}, of which had to fail: ${failedPosts} (${share} %), sent twice: ${duplicatedPosts}`);
console.log(`falsely complete: ${falselyComplete}; outcomes: ${JSON.stringify(report.outcomes)}`);
for (const violation of violations.slice(0, 20)) console.error(violation);
process.exitCode = violations.length === 0 && failedGets === 0 && duplicatedPosts === 0 ? 0 : 1;
