// Arguments and output: test/peers/broken-responses/clients.ts.
const [, base, ...paths] = process.argv.slice(2);

for (const path of paths) {
  let bytes = 0;
  let error = '';
  try {
    for await (const part of (await fetch(base + path)).body) bytes += part.length;
  } catch (thrown) {
    error = String(thrown.cause ?? thrown);
  }
  console.log(JSON.stringify({ path, bytes, error }));
}
