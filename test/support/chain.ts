/** The usual chain of an end-to-end test: a token server, a recording upstream, and a sidecar that is ready between them. */
import { startRecordingUpstream } from './recording-upstream.ts';
import type { Answer, RecordingUpstream } from './recording-upstream.ts';
import { newCredential } from './secrets.ts';
import { settings, startSidecar, untilReady } from './sidecar-process.ts';
import type { Environment, RunningSidecar } from './sidecar-process.ts';
import { startTokenServer } from './token-server.ts';
import type { TokenServer, TokenServerOptions } from './token-server.ts';

export interface ChainOptions {
  /** Names the sidecar's log. */
  readonly name: string;
  /** Default: echo. */
  readonly answer?: Answer;
  readonly token?: TokenServerOptions;
  readonly env?: Environment;
  /** Wait for the first token. Default true. */
  readonly ready?: boolean;
}

export interface Chain extends AsyncDisposable {
  readonly sidecar: RunningSidecar;
  readonly upstream: RecordingUpstream;
  readonly tokens: TokenServer;
}

export async function startChain(options: ChainOptions): Promise<Chain> {
  await using cleanup = new AsyncDisposableStack();
  const tokens = cleanup.use(await startTokenServer(options.token));
  const upstream = cleanup.use(await startRecordingUpstream(options.answer));
  const env = { ...settings(upstream.url, tokens.url, newCredential()), ...options.env };
  const sidecar = cleanup.use(await startSidecar({ name: options.name, env }));
  if (options.ready ?? true) await untilReady(sidecar);
  const all = cleanup.move();
  return { sidecar, upstream, tokens, [Symbol.asyncDispose]: () => all.disposeAsync() };
}
