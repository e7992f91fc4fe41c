/** Asks `/livez` of the admin URL in its argument each 50 ms, on connections of their own, until its stdin ends; prints one line of JSON. */
import { get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const TIMEOUT_MS = 1000;
const [, , url = ''] = process.argv;

/** @returns milliseconds; undefined: no response in time */
function ping(): Promise<number | undefined> {
  const startedAt = performance.now();
  return new Promise((resolve) => {
    const call = get(`${url}/livez`, { agent: false, timeout: TIMEOUT_MS }, (response) => {
      response
        .resume()
        .on('end', () => resolve(response.statusCode === 200 ? performance.now() - startedAt : undefined));
    });
    call.on('timeout', () => call.destroy(new Error('timeout'))).on('error', () => resolve(undefined));
  });
}

process.stdin.resume();
const times: (number | undefined)[] = [];
do {
  times.push(await ping());
  await sleep(50);
} while (!process.stdin.readableEnded);
const measured = times.filter((time) => time !== undefined).sort((a, b) => a - b);
const round = (time = NaN): number => Math.round(time * 10) / 10;
console.log(
  JSON.stringify({
    count: times.length,
    failed: times.length - measured.length,
    p50: round(measured[Math.floor(measured.length / 2)]),
    max: round(measured.at(-1)),
  }),
);
