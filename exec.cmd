@rem For npm start on Windows: see tools/start.ts.
@%*
