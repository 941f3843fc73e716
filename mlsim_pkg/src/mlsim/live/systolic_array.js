// The systolic array of `mlsim.hardware.systolic`, cycle by cycle: the same rule, the same counts.
//
// A cell is { rests, west, north, busy, sum }: places in the matrices as [row, column] counted from
// 0, or null; `sum` is what has been added up in it, or null.

const flipped = (matrix) => matrix[0].map((_, column) => matrix.map((row) => row[column]));
const grid = (rows, columns, value) => Array.from({ length: rows }, () => Array(columns).fill(value));

/** Multiply inputs by weights on rows x columns cells; `rest` says what lies still. */
export function multiply(inputs, weights, rows, columns, rest) {
  const run = { cycles: 0, multiplyAdds: 0, moves: 0, resting: 0, west: 0, north: 0, trace: [], product: [] };
  if (rest === "outputs") grow(run, inputs, weights, rows, columns);
  else if (rest === "weights") hold(run, weights, inputs, rows, columns, false);
  else hold(run, flipped(inputs), flipped(weights), rows, columns, true);
  let reads = [run.west, run.resting]; // of weights, and of inputs
  if (rest === "weights") reads = [run.resting, run.west];
  if (rest === "outputs") reads = [run.north, run.west];
  return {
    product: rest === "inputs" ? flipped(run.product) : run.product,
    cycles: run.cycles,
    multiplyAdds: run.multiplyAdds,
    weightReads: reads[0],
    inputReads: reads[1],
    outputMoves: run.moves,
    trace: run.trace,
    use: run.multiplyAdds / (run.cycles * rows * columns),
  };
}

function tick(run, phase, cells) {
  run.cycles += 1;
  run.trace.push({ number: run.cycles, phase, cells, busy: cells.flat().filter((cell) => cell.busy).length });
}

/** Multiply rows that stream in from the west by a matrix at rest, tile by tile. */
function hold(run, held, streamed, rows, columns, flip) {
  run.product = grid(streamed.length, held[0].length, 0);
  for (let left = 0; left < held[0].length; left += columns) {
    for (let top = 0; top < held.length; top += rows) {
      const tile = grid(rows, columns, null).map((row, r) =>
        row.map((_, c) => (top + r < held.length && left + c < held[0].length ? { at: [top + r, left + c], value: held[top + r][left + c] } : null)),
      );
      load(run, tile, rows, columns, flip);
      stream(run, tile, streamed, top, left, rows, columns, flip);
    }
  }
}

/** Return where an element stands in the matrix that the caller gave. */
function place(element, flip) {
  if (!element) return null;
  return flip ? [element.at[1], element.at[0]] : element.at;
}

/** Shift a tile in from the north, its last row first. */
function load(run, tile, rows, columns, flip) {
  run.resting += tile.flat().filter(Boolean).length;
  for (let now = 0; now < rows; now += 1) {
    const below = rows - 1 - now;
    tick(run, "load", grid(rows, columns, null).map((row, r) =>
      row.map((_, c) => ({ rests: r <= now ? place(tile[below + r][c], flip) : null, west: null, north: null, busy: false, sum: null })),
    ));
  }
}

/** Let all rows pass: to the east what came in, to the south what was added up. */
function stream(run, tile, streamed, top, left, rows, columns, flip) {
  const west = grid(rows, columns, null);
  const sums = grid(rows, columns, null);
  for (let now = 0; now < streamed.length + rows + columns - 2; now += 1) {
    for (let r = rows - 1; r >= 0; r -= 1) {
      for (let c = columns - 1; c >= 0; c -= 1) {
        if (c) west[r][c] = west[r][c - 1];
        else west[r][0] = enters(run, streamed, now - r, top + r);
        const above = (r ? sums[r - 1][c] : 0) ?? 0;
        const busy = tile[r][c] !== null && west[r][c] !== null;
        sums[r][c] = above + (busy ? tile[r][c].value * west[r][c].value : 0);
        run.multiplyAdds += busy;
      }
    }
    for (let c = 0; c < columns; c += 1) {
      const done = now - (rows - 1) - c;
      if (done >= 0 && done < streamed.length && left + c < run.product[0].length) {
        run.moves += 1 + (top > 0);
        run.product[done][left + c] += sums[rows - 1][c];
      }
    }
    tick(run, "compute", grid(rows, columns, null).map((row, r) =>
      row.map((_, c) => {
        const busy = tile[r][c] !== null && west[r][c] !== null;
        return { rests: place(tile[r][c], flip), west: place(west[r][c], flip), north: null, busy, sum: busy ? sums[r][c] : null };
      }),
    ));
  }
}

function enters(run, streamed, vector, element) {
  if (vector < 0 || vector >= streamed.length || element >= streamed[0].length) return null;
  run.west += 1;
  return { at: [vector, element], value: streamed[vector][element] };
}

/** Let outputs grow in the cells, while inputs pass east and weights pass south. */
function grow(run, inputs, weights, rows, columns) {
  run.product = grid(inputs.length, weights[0].length, 0);
  for (let top = 0; top < inputs.length; top += rows) {
    for (let left = 0; left < weights[0].length; left += columns) growTile(run, inputs, weights, top, left, rows, columns);
  }
}

function growTile(run, inputs, weights, top, left, rows, columns) {
  const [height, depth, width] = [inputs.length, weights.length, weights[0].length];
  const inside = grid(rows, columns, null).map((row, r) =>
    row.map((_, c) => (top + r < height && left + c < width ? [top + r, left + c] : null)),
  );
  for (let now = 0; now < depth + rows + columns - 2; now += 1) {
    tick(run, "compute", inside.map((row, r) =>
      row.map((rests, c) => {
        const [k, m, n] = [now - r - c, top + r, left + c];
        const there = k >= 0 && k < depth;
        const west = there && m < height ? [m, k] : null;
        const north = there && n < width ? [k, n] : null;
        run.west += west !== null && c === 0;
        run.north += north !== null && r === 0;
        const busy = west !== null && north !== null;
        if (busy) run.product[m][n] += inputs[m][k] * weights[k][n];
        run.multiplyAdds += busy;
        return { rests, west, north, busy, sum: rests && now >= r + c ? run.product[m][n] : null };
      }),
    ));
  }
  run.moves += inside.flat().filter(Boolean).length;
  for (let now = 0; now < rows; now += 1) {
    tick(run, "unload", inside.map((row, r) =>
      row.map((_, c) => ({ rests: r > now ? inside[r - now - 1][c] : null, west: null, north: null, busy: false, sum: null })),
    ));
  }
}
