"""Every compiled loop; arrays in, arrays out. Import the file that holds the loop you need."""
