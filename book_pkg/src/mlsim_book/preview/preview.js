// Preview only: reload when the page is built anew, stay at the same place, show errors.
(() => {
  const own = document.currentScript.dataset.version
  const key = 'mlsim-book-preview:' + location.pathname
  let source = null
  let reloading = false

  // ---------------------------------------------------------------- the place
  // It is kept from the nearest mark above, so text that grows elsewhere moves nothing.
  const marks = () => [...document.querySelectorAll('main [id]')]
  const remember = () => {
    let near = null
    for (const each of marks()) {
      const top = each.getBoundingClientRect().top
      if (top <= 1 && (!near || top >= near.top)) near = { id: each.id, top }
    }
    const place = { y: scrollY, id: near && near.id, top: near && near.top }
    sessionStorage.setItem(key, JSON.stringify(place))
  }
  const restore = () => {
    const kept = sessionStorage.getItem(key)
    if (!kept) return
    sessionStorage.removeItem(key)
    const place = JSON.parse(kept)
    const go = () => {
      const near = place.id && document.getElementById(place.id)
      const y = near ? near.getBoundingClientRect().top + scrollY - place.top : place.y
      scrollTo({ top: y, behavior: 'instant' })
    }
    go()
    addEventListener('load', go, { once: true })
  }
  const reload = () => {
    remember()
    reloading = true
    history.scrollRestoration = 'manual' // the browser would go to the old height
    location.reload()
  }

  // ---------------------------------------------------------------- the error
  const show = (text) => {
    let box = document.getElementById('preview-error')
    if (!text) return box && box.remove()
    if (!box) {
      box = document.createElement('section')
      box.id = 'preview-error'
      box.setAttribute('role', 'alert')
      Object.assign(box.style, {
        position: 'fixed', inset: 'auto 0 0 0', zIndex: 9999, maxHeight: '60vh', overflow: 'auto',
        padding: '1rem 1.5rem', background: '#2b0a0a', color: '#fff',
        borderTop: '4px solid #ff6b6b',
      })
      const head = document.createElement('strong')
      head.textContent = 'The book can’t be built; this is the last good page.'
      const pre = document.createElement('pre')
      Object.assign(pre.style, {
        margin: '.75rem 0 0', whiteSpace: 'pre-wrap', color: 'inherit', background: 'none',
        font: '0.9rem/1.45 ui-monospace, monospace',
      })
      box.append(head, pre)
      document.body.append(box)
    }
    box.querySelector('pre').textContent = text
  }

  // ---------------------------------------------------------------- the server
  const listen = () => {
    if (source || document.hidden) return
    source = new EventSource('/.preview/events?page=' + encodeURIComponent(location.pathname))
    source.onmessage = (event) => {
      const told = JSON.parse(event.data)
      show(told.error)
      if (told.version && told.version !== own) reload()
    }
  }
  // a browser opens few connections to one server: a tab that nobody sees gives its own back
  document.addEventListener('visibilitychange', () => {
    if (document.hidden && source) { source.close(); source = null }
    listen()
  })
  addEventListener('pagehide', () => {
    if (source) source.close()
    if (!reloading) history.scrollRestoration = 'auto'
  })
  restore()
  listen()
})()
