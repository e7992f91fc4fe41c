/** A sidecar without a fleet, in a process of its own: prints what of a fleet is in it. */
import { createRequire } from 'node:module';
import { loadConfig } from '../../src/config/load/load.ts';
import { startSidecar } from '../../src/composition/sidecar.ts';
import { createRecordingLog } from '../support/recorded-events.ts';

const loaded = loadConfig({
  env: {
    SIDECAR_BASE_URL: 'http://127.0.0.1:1',
    SIDECAR_AUTH_URL: 'http://127.0.0.1:1',
    SIDECAR_CLIENT_ID: 'client-of-the-tests',
    SIDECAR_CLIENT_SECRET: 'secret-of-the-tests',
    SIDECAR_SCOPE: 'a',
    SIDECAR_LISTEN: '127.0.0.1:0',
    SIDECAR_ADMIN_LISTEN: '127.0.0.1:0',
    SIDECAR_DRAIN_MS: '0',
  },
});
if (!loaded.ok) throw new Error('refused');
const { config } = loaded;
const sidecar = await startSidecar({ config, version: '0.0.0', log: createRecordingLog() });
const metrics = await (await fetch(`${sidecar.adminUrl}/metrics`)).text();
await sidecar.drain();
const files = Object.keys(createRequire(import.meta.url).cache);
console.log(
  JSON.stringify({
    clientModules: files.filter((file) => file.includes('@redis')).length,
    fleetMetrics: metrics.split('\n').filter((line) => line.includes('fleet')).length,
  }),
);
