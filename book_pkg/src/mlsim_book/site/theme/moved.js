// At an old address: send the reader on to the page that has the section now.
{
  const places = JSON.parse(document.getElementById("places").textContent);
  const id = decodeURIComponent(location.hash.slice(1));
  location.replace((places.parts[id] || places.page) + location.search + location.hash);
}
