/** A configuration file that is replaced as a careful editor or Kubernetes does it: in one step, never half written. */
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface ConfigFile extends AsyncDisposable {
  readonly path: string;
  replace(yaml: string): Promise<void>;
}

export async function writeConfigFile(yaml: string): Promise<ConfigFile> {
  const directory = await mkdtemp(join(tmpdir(), 'sidecar-config-'));
  const path = join(directory, 'sidecar.yaml');
  const replace = async (text: string): Promise<void> => {
    await writeFile(`${path}.new`, text);
    await rename(`${path}.new`, path);
  };
  await replace(yaml);
  return {
    path,
    replace,
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  };
}
