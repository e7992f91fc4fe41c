/** `bearer-sidecar status`: prints what a running sidecar says of itself, as text or as the document of /status. */
import type { LoadOptions } from '../config/load/load.ts';
import { toSingleLine } from '../config/load/problems.ts';
import { loadAdminAddress, readAdminText, requestAdminPort } from './admin-port.ts';
import { failWith, paintFor } from './terminal.ts';

const PATHS = { text: '/status.txt', limits: '/limits.txt', json: '/status' } as const;

/** @returns 0 when requests can be served, 1 when not or without a response, 2 for wrong settings */
export async function status(load: LoadOptions, form: keyof typeof PATHS, stop: AbortSignal): Promise<number> {
  const address = loadAdminAddress(load);
  if (address === undefined) return 2;
  const reading = await readAdminText(address, PATHS[form], stop);
  if (reading.status === undefined) return failWith(1, reading.text);
  // The text may be another program's: only its line ends are kept as they are.
  const [heading = '', ...lines] = reading.text.split('\n').map(toSingleLine);
  const text = [paintFor(process.stdout)('heading', heading), ...lines].join('\n');
  process.stdout.write(`${form === 'json' ? reading.text : text}\n`);
  return (await requestAdminPort(address, '/readyz', stop)).status === 200 ? 0 : 1;
}
