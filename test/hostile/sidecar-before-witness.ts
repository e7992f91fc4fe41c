/** The sidecar as a child process, unthrottled, with the witness as its upstream. */
import { startSidecar, baseSettings, waitUntilReady } from '../support/sidecar-process.ts';
import type { Environment, RunningSidecar } from '../support/sidecar-process.ts';
import { newCredential } from '../support/secrets.ts';
import { startTokenServer } from '../support/token-server.ts';
import { startByteWitness } from './byte-witness.ts';
import type { ByteWitness } from './byte-witness.ts';

export interface WitnessedSidecar extends AsyncDisposable {
  readonly sidecar: RunningSidecar;
  readonly witness: ByteWitness;
}

/** The corpus names this host by its default port, not by the one that the sidecar takes. */
const ALLOWED = { SIDECAR_ALLOWED_HOSTS: 'localhost,127.0.0.1,[::1],localhost:80' };
const UNTHROTTLED = { SIDECAR_RATE: '1000000', SIDECAR_BURST: '10000' };

/** @param name of the copy of its output */
export async function startBeforeWitness(name: string, env: Environment = {}): Promise<WitnessedSidecar> {
  await using cleanup = new AsyncDisposableStack();
  const tokens = cleanup.use(await startTokenServer());
  const witness = cleanup.use(await startByteWitness());
  const given = { ...baseSettings(witness.url, tokens.url, newCredential()), ...UNTHROTTLED, ...ALLOWED, ...env };
  const sidecar = cleanup.use(await startSidecar({ name, env: given }));
  await waitUntilReady(sidecar);
  const all = cleanup.move();
  return { sidecar, witness, [Symbol.asyncDispose]: () => all.disposeAsync() };
}
