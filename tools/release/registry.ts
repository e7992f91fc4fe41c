/** A registry of images on this machine (Debian's docker-registry), for one rehearsal. */
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { waitUntilResponding } from '../../test/bench/speed/ready.ts';
import { freePort } from '../../test/support/loopback.ts';

export interface Registry extends Disposable {
  /** Such as `127.0.0.1:12345`: what a name of an image begins with. */
  readonly address: string;
}

/** @param folder is made, and holds the images */
export async function startRegistry(folder: string): Promise<Registry> {
  const address = `127.0.0.1:${String(await freePort())}`;
  const file = join(folder, 'config.yml');
  mkdirSync(folder);
  const storage = `storage: { filesystem: { rootdirectory: ${folder} } }`;
  writeFileSync(file, `version: 0.1\n${storage}\nhttp: { addr: ${address} }\n`);
  const server = spawn('docker-registry', ['serve', file], { stdio: 'ignore' });
  await waitUntilResponding(`http://${address}/v2/`, () => server.exitCode !== null);
  return { address, [Symbol.dispose]: () => void server.kill() };
}
